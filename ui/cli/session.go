package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/ui"
)

// A session is a running monitor for the length of one command.
type session struct {
	*run
	o  *Opened
	m  ui.Monitor
	mu sync.Mutex
	ch chan struct{} // closed at each change, then made anew; guarded by mu
}

// withMonitor runs fn on a running monitor of the servers named (nil: all) and
// closes it again. Its timeout is the command's.
func (r *run) withMonitor(ctx context.Context, only []string, fn func(ctx context.Context, s *session) error) error {
	return r.withMonitorFrom(ctx, only, func(*session) {}, fn)
}

// withMonitorFrom is withMonitor with a look at the monitor before it runs, for
// who must not miss what happens first.
func (r *run) withMonitorFrom(ctx context.Context, only []string, before func(s *session), fn func(ctx context.Context, s *session) error) error {
	g := r.g
	g.Only, g.Headless = only, true
	o, err := r.deps.Open(ctx, g)
	if err != nil {
		return err
	}
	defer func() {
		if o.Close != nil {
			_ = o.Close()
		}
	}()
	for _, n := range o.Notes {
		fmt.Fprintln(r.env.Stderr, "mcptasks: "+n)
	}
	for _, name := range only {
		if !slices.Contains(o.Names, name) {
			return NoServer(name, o.Names)
		}
	}
	s := &session{run: r, o: o, m: o.Monitor, ch: make(chan struct{})}
	before(s)
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { _ = o.Run(life) })
	wg.Go(func() { s.spread(life) })
	err = fn(ctx, s)
	end()
	wg.Wait()
	if o.Trouble != nil {
		if words := o.Trouble(); words != "" {
			fmt.Fprintln(r.env.Stderr, "mcptasks: "+words+". Not all of this is remembered.")
		}
	}
	return err
}

// spread wakes every waiter when the board has changed.
func (s *session) spread(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.m.Dirty():
			s.mu.Lock()
			close(s.ch)
			s.ch = make(chan struct{})
			s.mu.Unlock()
		}
	}
}

// await waits until cond holds of the board. cond runs on the caller's
// goroutine.
func (s *session) await(ctx context.Context, cond func(v *board.Version) bool) error {
	for {
		s.mu.Lock()
		ch := s.ch
		s.mu.Unlock()
		if cond(s.m.Board()) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ch:
		}
	}
}

// tried reports whether a server's first connection attempt has ended, one way
// or the other; listed whether its first listing has, too.
func tried(s taskmodel.Server) bool {
	return s.State != taskmodel.ServerConnecting
}

func listed(s taskmodel.Server) bool {
	return tried(s) && !(s.State == taskmodel.ServerReady && s.Can.List && s.Listing)
}

// settle waits until all servers that were started have been tried and, with
// list, listed.
func (s *session) settle(ctx context.Context, list bool) error {
	var late []string
	err := s.await(ctx, func(v *board.Version) bool {
		late = nil
		for _, sv := range v.Servers() {
			if !tried(sv) || list && !listed(sv) {
				late = append(late, sv.Name)
			}
		}
		return late == nil
	})
	return tooLate(err, late...)
}

// tooLate names the servers for which there was no time left; another error is
// left as it is.
func tooLate(err error, servers ...string) error {
	if !errors.Is(err, context.DeadlineExceeded) || len(servers) == 0 {
		return err
	}
	only := ""
	if len(servers) == 1 {
		only = servers[0]
	}
	return failf("timeout", only, "no answer yet from %s, and the time for it is over; --timeout gives more", strings.Join(servers, ", "))
}

// serverError is the error of a server that cannot be used now, nil when it can.
func serverError(sv taskmodel.Server) error {
	switch sv.State {
	case taskmodel.ServerReady, taskmodel.ServerConnecting:
		return nil
	case taskmodel.ServerAuth:
		return failf("auth", sv.Name, "%s", orElse(sv.Error, sv.Name+" wants a sign-in: mcptasks login "+sv.Name))
	case taskmodel.ServerOff:
		if sv.Source == taskmodel.SourceTap {
			return nil // what is known of it is in the journal
		}
		if sv.HeldBy != "" {
			return nil // its holder does what is asked for here
		}
		return failf("unreachable", sv.Name, "%s is not started: name it to start it", sv.Name)
	case taskmodel.ServerFailed:
		return failf("config", sv.Name, "%s cannot be used: %s", sv.Name, orElse(sv.Error, "its entry is not valid"))
	}
	if sv.HeldBy != "" {
		return nil
	}
	return failf("unreachable", sv.Name, "%s", orElse(sv.Error, sv.Name+" cannot be reached"))
}

// need waits until a server is ready, or gives the error that it ended with.
func (s *session) need(ctx context.Context, name string) (taskmodel.Server, error) {
	err := s.await(ctx, func(v *board.Version) bool {
		sv, ok := v.Server(name)
		return !ok || tried(sv)
	})
	if err != nil {
		return taskmodel.Server{}, tooLate(err, name)
	}
	sv, ok := s.m.Board().Server(name)
	if !ok {
		return sv, usagef("there is no server %q", name)
	}
	return sv, serverError(sv)
}

// parseTask splits SERVER/TASKID; an @ marks a task that the server asked of us.
func parseTask(arg string) (server, id string, role taskmodel.Role, err error) {
	server, id, ok := strings.Cut(arg, "/")
	if !ok || server == "" || id == "" || id == "@" {
		return "", "", "", usagef("%q names no task: it is SERVER/TASKID", arg)
	}
	if rest, ok := strings.CutPrefix(id, "@"); ok {
		return server, rest, taskmodel.Receiver, nil
	}
	return server, id, taskmodel.Requestor, nil
}

func serversOf(args []string) ([]string, error) {
	var out []string
	for _, a := range args {
		server, _, _, err := parseTask(a)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, server) {
			out = append(out, server)
		}
	}
	return out, nil
}

// resolve finds the task that an argument means: the exact id, then a prefix in
// what is remembered, then in the server's list, then an id that only the
// server can tell.
func (s *session) resolve(ctx context.Context, arg string) (taskmodel.Key, error) {
	server, id, role, err := parseTask(arg)
	if err != nil {
		return taskmodel.Key{}, err
	}
	k := taskmodel.Key{Server: server, ID: id, Role: role}
	if k, done, err := s.lookup(k, arg); done {
		return k, err
	}
	sv, err := s.need(ctx, server)
	// What is remembered is on the board once the server has been tried, also
	// when that failed.
	if k, done, lerr := s.lookup(k, arg); done {
		return k, lerr
	}
	if err != nil {
		return k, err
	}
	if sv.Can.List {
		if err := s.await(ctx, func(v *board.Version) bool {
			if _, ok := v.Task(k); ok {
				return true
			}
			sv, ok := v.Server(server)
			return !ok || listed(sv)
		}); err != nil {
			return k, err
		}
		if k, done, err := s.lookup(k, arg); done {
			return k, err
		}
	}
	if role == taskmodel.Requestor {
		if t, err := s.m.Add(ctx, server, id); err == nil {
			return t.Key, nil
		} else if e := classify(err, server); e.Kind != "not_found" && e.Kind != "protocol" && e.Kind != "failed" {
			return k, err
		}
	}
	return k, failf("not_found", server, "%s knows no task %q, and neither does this machine", server, id)
}

// resolveAll finds the tasks that the arguments mean and does with each what is
// to be done (nil: nothing). What fails is told; the tasks found are given.
func (s *session) resolveAll(ctx context.Context, args []string, do func(k taskmodel.Key) error) []taskmodel.Key {
	var keys []taskmodel.Key
	for _, arg := range args {
		k, err := s.resolve(ctx, arg)
		if err == nil {
			keys = append(keys, k)
			if do != nil {
				err = do(k)
			}
		}
		s.code = s.joinErrors(s.code, err, k.Server)
	}
	return keys
}

func (s *session) lookup(k taskmodel.Key, arg string) (taskmodel.Key, bool, error) {
	v := s.m.Board()
	if _, ok := v.Task(k); ok {
		return k, true, nil
	}
	switch found := v.Find(k.Server, k.ID, k.Role); len(found) {
	case 0:
		return k, false, nil
	case 1:
		return found[0], true, nil
	default:
		names := make([]string, 0, 3)
		for _, f := range found[:min(3, len(found))] {
			names = append(names, f.ID)
		}
		return k, true, usagef("%q begins %d tasks (%s…): give more of the id", arg, len(found), strings.Join(names, ", "))
	}
}

// sync has the monitor publish what was done, so that it can be printed.
func (s *session) sync(ctx context.Context) {
	if m, ok := s.m.(interface{ Sync(context.Context) error }); ok {
		_ = m.Sync(ctx) // it fails only when the run is over; then the last board serves
	}
}

// task reads one task's present row.
func (s *session) task(k taskmodel.Key) taskmodel.Task {
	t, _ := s.m.Board().Task(k)
	if t.ID == "" {
		t.Key = k
	}
	return t
}

func (s *session) shape(k taskmodel.Key, full bool) taskJSON {
	return shapeTask(s.task(k), s.m.Board(), full)
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// bound gives ctx the command's time limit: what --timeout says, else the
// given default (0: none).
func (r *run) bound(ctx context.Context, otherwise time.Duration) (context.Context, context.CancelFunc) {
	d := otherwise
	if r.g.HasLimit {
		d = r.g.Timeout
	}
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d, context.DeadlineExceeded)
}

// An allowance is the time that servers have in all during a command in which a
// person also takes some. It is for one goroutine.
type allowance struct {
	left time.Duration
	none bool // the context alone bounds it
}

func newAllowance(d time.Duration, none bool) *allowance { return &allowance{left: d, none: none} }

// use runs f, which waits for servers, within what is left.
func (a *allowance) use(ctx context.Context, f func(context.Context) error) error {
	if a.none {
		return f(ctx)
	}
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, a.left, context.DeadlineExceeded)
	defer cancel()
	err := f(ctx)
	a.left -= time.Since(began)
	return err
}

// joinErrors prints each error and keeps the code that wins.
func (r *run) joinErrors(code int, err error, server string) int {
	if err == nil || errors.Is(err, errSaid) {
		return code
	}
	return worse(code, r.report(err, server))
}

// errSaid ends a command whose exit code is already set and told.
var errSaid = errors.New("said")
