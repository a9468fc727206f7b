package monitor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mcptasks/mcp"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// A server is the supervisor of one server: its connection, its tasks' polls,
// its listing, its questions. All of it is the loop's but what says otherwise.
type server struct {
	m       *Monitor
	spec    ServerSpec
	lane    *lane
	rtts    rttRing                      // own lock
	secrets secrets                      // own lock
	root    atomic.Pointer[[]mcp.Root]   // read by the connection
	row     taskmodel.Server             // as it will be put on the board
	rows    bool                         // row has changed
	ends    map[string][]chan struct{}   // closed when the task has ended or is gone
	turn    chan struct{}                // closed at the next change of state
	was     map[taskmodel.QuestionID]int // questions: the connection that asked them
	// older are questions of an earlier connection of the same session; visits are
	// pages that calls want visited first (-32042).
	older    map[taskmodel.QuestionID]bool
	visits   map[taskmodel.QuestionID]bool
	past     []taskmodel.QuestionID                   // answered and withdrawn ones, oldest first
	early    map[taskmodel.Key][]taskmodel.QuestionID // questions that came before their task
	stranger time.Time                                // since when the sign-in is another than before; zero: it is not
	drafts   map[taskmodel.QuestionID]*drafting       // on their way to other processes
	heir     bool                                     // what was read from the journal is to be settled: inherit

	// The connection.
	want      bool // the person or the configuration wants it
	client    client
	conn      int // numbers the connections
	connCtx   context.Context
	connEnd   context.CancelFunc
	dialling  bool
	attempts  int
	since     time.Time // when it became ready
	renewed   time.Time // when a lost session was last replaced
	retry     *alarm
	session   *journal.Session // to be taken up
	sessionID string           // of this connection
	era       string           // found by an earlier connection
	lost      bool             // the server forgot our session: what it does not know may be that session's

	// Polling.
	watches  map[string]*watch
	due      watchHeap // the ordinary ones
	urgent   watchHeap // those that wait for input
	focus    []string  // those to look at first
	inFocus  map[string]bool
	inflight int
	poller   *alarm
	hold     time.Time // no polls before: the server fails
	checker  *alarm    // asks a server that fails whether it is back
	holds    int
	probing  bool // one poll is out to see whether it is back
	paced    time.Time
	pushed   int // watches with acknowledged pushes
	watcher  *alarm
	polls    minute
	pushes   minute
	gauge    *alarm

	// Listing.
	list     *sweep
	lister   *alarm
	pages    int // of the last whole listing
	listed   int // watches that the last whole listing had
	sweepNo  int
	cannot   bool                 // the server has no listing
	listFail int                  // failed listings in a row
	making   map[string]any       // what is to stand in the history of the task that is being put on the board
	forgot   map[string]forgotten // forgotten by the person: a listing does not bring them back
	count    int                  // tasks on the board

	// Results.
	results map[string]*fetch
	waiting []string        // ids whose results are to be fetched
	queued  map[string]bool // those in waiting
	fetches int
	owing   map[string]debt // those that failed and are tried again

	tools      []taskmodel.Tool
	toolsKnown bool

	lease   lease
	trouble string                        // what the row says of the journal
	left    map[taskmodel.QuestionID]bool // questions that are not shown: too many are open
	// What processes beside this one knew of what was read, until it is settled
	// who connects.
	beside map[taskmodel.Key]journal.Standing
	tap    *tapped // not nil: a server that is tapped, see tapped.go
}

func newServer(m *Monitor, spec ServerSpec) *server {
	now := m.now()
	s := &server{
		m: m, spec: spec, lane: m.mail.lane(), left: map[taskmodel.QuestionID]bool{},
		ends: map[string][]chan struct{}{}, turn: make(chan struct{}),
		was: map[taskmodel.QuestionID]int{}, older: map[taskmodel.QuestionID]bool{}, early: map[taskmodel.Key][]taskmodel.QuestionID{}, visits: map[taskmodel.QuestionID]bool{},
		drafts:  map[taskmodel.QuestionID]*drafting{},
		watches: map[string]*watch{}, forgot: map[string]forgotten{}, results: map[string]*fetch{}, owing: map[string]debt{}, queued: map[string]bool{}, inFocus: map[string]bool{},
		row: taskmodel.Server{
			Name: spec.Name, Target: spec.Target, Source: spec.Source, Warning: spec.Warning,
			State: taskmodel.ServerOff, StateSince: now,
			Generation: spec.Generation,
		},
	}
	if s.row.Generation == "" {
		s.row.Generation = taskmodel.GenNone
	}
	if spec.Dialer != nil {
		s.row.Transport = spec.Dialer.Kind()
	}
	switch {
	case spec.Autostart && spec.Disabled == "" && spec.Dialer != nil:
		s.row.State = taskmodel.ServerConnecting // so that nobody takes it for one that waits to be started
	case spec.Disabled != "":
		s.row.State, s.row.Error = taskmodel.ServerFailed, spec.Disabled
	case spec.Dialer == nil:
		s.row.State, s.row.Error = taskmodel.ServerFailed, "nothing says how to reach this server; give it a url or a command"
	case !spec.Autostart:
		s.row.Error = "not started by itself; connect it to see its tasks"
	}
	s.poller = &alarm{do: s.schedule, index: -1}
	s.retry = &alarm{do: s.dial, index: -1}
	s.lister = &alarm{do: s.relist, index: -1}
	s.watcher = &alarm{do: s.askPushes, index: -1}
	s.gauge = &alarm{do: s.measure, index: -1}
	s.checker = &alarm{do: s.recheck, index: -1}
	s.lease.tick = &alarm{do: s.leaseTick, index: -1}
	s.row.Roots = s.setRoots(spec.Roots)
	s.secrets.configured(spec.Secrets)
	// A program's stderr belongs on its server's row.
	switch d := spec.Dialer.(type) {
	case *transport.Stdio:
		c := *d
		own := c.Stderr
		c.Stderr = func(line string) {
			if own != nil {
				own(line)
			}
			s.stderr(line)
		}
		s.spec.Dialer = &c
	case *transport.HTTP:
		c := *d
		c.Signs = s.secrets.signs
		s.spec.Dialer = &c
	case interface{ SetStderr(func(string)) }:
		d.SetStderr(s.stderr)
	}
	return s
}

func (s *server) key(id string) taskmodel.Key {
	return taskmodel.Key{Server: s.spec.Name, ID: id, Role: taskmodel.Requestor}
}

// change alters the server's row.
func (s *server) change(f func(*taskmodel.Server)) {
	f(&s.row)
	s.rows = true
	s.m.touch()
}

// putRow puts the row on the board if it has changed.
func (s *server) putRow() {
	if s.rtts.fresh.Swap(false) {
		s.row.RTT, s.row.RTTs = s.rtts.read()
		s.rows = true
	}
	if s.rows {
		s.rows = false
		row := s.row
		if s.trouble != "" {
			row.Warning = join(row.Warning, s.trouble)
		}
		if words := s.leftWords(); words != "" {
			row.Warning = join(row.Warning, words)
		}
		s.m.board.PutServer(row)
	}
}

// state changes the connection's state and tells those who wait and listen.
func (s *server) state(st taskmodel.ServerState, words string) {
	now := s.m.now()
	old, said := s.row.State, s.row.Error
	s.change(func(r *taskmodel.Server) {
		if r.State != st {
			r.StateSince = now
		}
		r.State, r.Error = st, words
		if st != taskmodel.ServerRetrying {
			r.RetryAt = time.Time{}
		}
	})
	close(s.turn)
	s.turn = make(chan struct{})
	// Of a server that is off the words say who holds it: that may change alone.
	if old != st || st == taskmodel.ServerOff && said != words {
		d := map[string]any{"state": st, "from": old}
		if words != "" {
			d["error"] = words
		}
		s.m.emit(taskmodel.Event{Time: now, Server: s.spec.Name, Kind: taskmodel.EventServer, Message: words, Detail: detail(d)})
	}
}

// stderr and logged keep the last lines on the server's row.
func (s *server) stderr(line string) {
	line = s.secrets.text(line)
	s.lane.do("", func() {
		s.change(func(r *taskmodel.Server) { r.Stderr = appendBounded(r.Stderr, line, logLines) })
	})
	s.m.wire.put(taskmodel.WireEntry{At: s.m.now(), Server: s.spec.Name, Direction: taskmodel.Received,
		Kind: "stderr", Size: len(line), Bytes: []byte(line)})
}

func (s *server) logged(l taskmodel.LogLine) {
	s.change(func(r *taskmodel.Server) { r.Logs = appendBounded(r.Logs, l, logLines) })
	e := taskmodel.Event{Time: l.At, Server: s.spec.Name, Kind: taskmodel.EventLog, Message: l.Text,
		Detail: detail(map[string]any{"level": l.Level, "logger": l.Logger, "text": l.Text})}
	if l.Task != "" {
		e.Task = s.key(l.Task)
	}
	s.m.emit(e)
}

// appendBounded copies: versions of the board share what was there.
func appendBounded[T any](list []T, v T, most int) []T {
	if len(list) >= most {
		list = list[len(list)-most+1:]
	}
	out := make([]T, 0, len(list)+1)
	return append(append(out, list...), v)
}

// setRoots is called from any goroutine. It gives the roots back as the server is
// told of them.
func (s *server) setRoots(paths []string) (uris []string) {
	roots := make([]mcp.Root, 0, len(paths))
	for _, p := range paths {
		r := rootOf(p)
		roots, uris = append(roots, r), append(uris, r.URI)
	}
	s.root.Store(&roots)
	return uris
}

// rootOf makes a folder a root; what is a URI already stays one.
func rootOf(path string) mcp.Root {
	if len(path) > 7 && path[:7] == "file://" {
		return mcp.Root{URI: path, Name: filepath.Base(path)}
	}
	// As a shell has it: nobody means a folder called ~.
	if rest, ok := strings.CutPrefix(path+"/", "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			path = filepath.Join(home, rest)
		}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		abs = path
	}
	return mcp.Root{URI: fileURI(abs), Name: filepath.Base(abs)}
}

// pid says in words who holds a server.
func holderWords(h journal.Holder) string {
	what := h.What
	if what == "" {
		what = "mcptasks"
	}
	if h.Host != "" {
		return fmt.Sprintf("%s (pid %d on %s)", what, h.PID, h.Host)
	}
	return fmt.Sprintf("%s (pid %d)", what, h.PID)
}

// An rttRing keeps the last round-trip times.
type rttRing struct {
	mu    sync.Mutex
	times []time.Duration
	fresh atomic.Bool
}

const rttKept = 60

func (r *rttRing) put(d time.Duration) {
	r.mu.Lock()
	if len(r.times) >= 2*rttKept {
		r.times = append(r.times[:0], r.times[len(r.times)-rttKept+1:]...)
	}
	r.times = append(r.times, d)
	r.mu.Unlock()
	r.fresh.Store(true)
}

func (r *rttRing) read() (time.Duration, []time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.times) == 0 {
		return 0, nil
	}
	t := slices.Clone(r.times[max(0, len(r.times)-rttKept):])
	return t[len(t)-1], t
}

// A minute counts what happened in the last 60 seconds, by seconds.
type minute struct {
	at  int64 // unix second of the newest bucket
	n   [60]int
	sum int
}

func (c *minute) add(now time.Time, n int) {
	c.move(now)
	c.n[c.at%60] += n
	c.sum += n
}

func (c *minute) move(now time.Time) {
	at := now.Unix()
	if at-c.at >= 60 || at < c.at {
		*c = minute{at: at}
		return
	}
	for c.at < at {
		c.at++
		c.sum -= c.n[c.at%60]
		c.n[c.at%60] = 0
	}
}

func (c *minute) read(now time.Time) int {
	c.move(now)
	return c.sum
}

// measure puts the rates on the row, now and then while there are any.
func (s *server) measure() {
	now := s.m.now()
	p, q := s.polls.read(now), s.pushes.read(now)
	if p != s.row.PollsPerMinute || q != s.row.PushesPerMinute {
		s.change(func(r *taskmodel.Server) { r.PollsPerMinute, r.PushesPerMinute = p, q })
	}
	if p+q > 0 {
		s.m.alarms.set(s.gauge, now.Add(2*time.Second))
	}
}

// counted starts the measuring.
func (s *server) counted() {
	if !s.m.alarms.isSet(s.gauge) {
		s.m.alarms.set(s.gauge, s.m.now().Add(2*time.Second))
	}
}
