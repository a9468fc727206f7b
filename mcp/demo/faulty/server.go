package faulty

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"mcptasks/mcp/demo"
)

// A Server is a demo server behind a script. It is safe for concurrent use.
type Server struct {
	opts demo.Options
	book *book

	mu     sync.Mutex
	demo   *demo.Server
	conns  map[*conn]bool
	links  map[string]*link // of HTTP sessions
	stuck  chan struct{}    // closed by a hang over HTTP: nothing is answered any more
	quit   chan struct{}    // closed by Close and by Restart, which makes another
	closed bool
}

// New makes a server with a script, which may be empty. A script that begins
// with @ is the name of a file that holds it.
func New(o demo.Options, script string) (*Server, error) {
	if name, ok := strings.CutPrefix(script, "@"); ok {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("fault script: %w", err)
		}
		script = string(b)
	}
	s := &Server{opts: o, book: &book{}, conns: map[*conn]bool{}, links: map[string]*link{}, stuck: make(chan struct{}), quit: make(chan struct{})}
	if err := s.book.add(script); err != nil {
		return nil, err
	}
	s.demo = demo.New(o)
	return s, nil
}

// Demo is the server behind the script, as it is now: a restart without its
// tasks makes another.
func (s *Server) Demo() *demo.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.demo
}

// Add puts further rules behind those that are there.
func (s *Server) Add(script string) error { return s.book.add(script) }

// Clear takes all rules away: from then on all is well. What is late or stuck
// already stays so.
func (s *Server) Clear() { s.book.clear() }

// Fired are the rules that have acted, each as often as it did, in order.
func (s *Server) Fired() []string { return s.book.log() }

// Overhear names who is told of each message before a rule is applied to it:
// with its point, and its method or that of the request that it answers. f is
// called from many goroutines and must not block. It is to be named before the
// first connection.
func (s *Server) Overhear(f func(point, method string, b []byte)) { s.book.overhear = f }

// Restart ends all connections and sessions, as a restart of the server does,
// and with them a hang. Unless keep is set, its tasks are gone and the new ones
// have other ids.
func (s *Server) Restart(keep bool) {
	s.mu.Lock()
	old := s.demo
	if !keep {
		o := s.opts
		if o.Seed != 0 {
			o.Seed += 7717
		}
		s.opts = o
		s.demo = demo.New(o)
	}
	conns := s.conns
	s.conns = map[*conn]bool{}
	s.links = map[string]*link{}
	if !s.closed {
		close(s.quit)
		s.stuck, s.quit = make(chan struct{}), make(chan struct{})
	}
	s.mu.Unlock()
	for c := range conns {
		c.end(errRestarted)
	}
	if keep {
		old.DropSessions()
	} else {
		old.Close()
	}
}

// life gives what hangs the server and what ends it.
func (s *Server) life() (stuck, quit chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stuck, s.quit
}

// Close ends it, and all that it was made to hold.
func (s *Server) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	close(s.quit)
	conns := s.conns
	s.conns = map[*conn]bool{}
	d := s.demo
	s.mu.Unlock()
	for c := range conns {
		c.end(errRestarted)
	}
	d.Close()
}
