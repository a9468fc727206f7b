package demo

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// populate makes the tasks that are there at the start, as if a client had
// started them some time ago: the engine runs through that time at once.
func (s *Server) populate(n int) {
	e := s.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock()
	rng := rand.New(rand.NewPCG(e.seed, 0x7461736b73))
	e.now = now // keeps the timer from being armed while the past is put together
	for _, p := range s.past(n, rng) {
		at := now.Add(-e.scaled(p.age))
		_ = e.beginLocked(start{tool: p.tool, args: p.args, at: at, caps: allCaps, id: p.id, parent: p.parent})
	}
	if s.opts.Arrivals > 0 {
		s.arrivals(now, s.opts.Arrivals, rng)
	}
	e.now = time.Time{}
	e.run(now)
}

// A past is one task of the start: what, and how long ago.
type past struct {
	tool   *tool
	args   json.RawMessage
	age    time.Duration
	id     string
	parent string
}

// past picks n tasks: first one of each interesting kind at an age at which it
// shows what it is for, then short ones. Oldest first.
func (s *Server) past(n int, rng *rand.Rand) []past {
	show := []struct {
		tool string
		arg  int
		age  time.Duration
	}{
		{"build", 0, 17 * time.Second},
		{"deploy_release", 0, 95 * time.Second},
		{"migrate_schema", 0, 40 * time.Second},
		{"run_tests", 0, 4 * time.Minute},
		{"reindex_search", 0, 26 * time.Minute},
		{"nightly_export", 0, 35 * time.Second},
		{"sign_artifact", 0, 70 * time.Second},
		{"write_release_notes", 0, 55 * time.Second},
		{"report_coverage", 0, 9 * time.Minute},
		{"security_scan", 0, 6 * time.Minute},
		{"queue_assay", 0, 20 * time.Second},
		{"calibrate_probe", 0, 3 * time.Minute},
		{"run_protocol", 0, 2 * time.Minute},
		{"warm_cache", 0, 4 * time.Minute},
		{"provision_preview", 0, 20 * time.Second},
		{"build", 1, 8 * time.Minute},
		{"deploy_release", 1, 3 * time.Second},
		{"queue_assay", 1, 85 * time.Second},
		{"run_tests", 1, 12 * time.Second},
		{"build", 2, 30 * time.Minute},
		{"warm_cache", 1, 40 * time.Second},
	}
	var out []past
	for _, p := range show {
		if len(out) == n {
			break
		}
		t := s.find(p.tool)
		if t == nil {
			continue
		}
		out = append(out, past{tool: t, args: json.RawMessage(t.sample[p.arg]), age: p.age})
	}
	lint := s.find("lint_file")
	if lint == nil {
		lint = s.tools[0]
	}
	// The short ones came in bursts, as they do after a push.
	age := 40 * time.Second
	for i := 0; len(out) < n; i++ {
		if i%40 == 39 {
			age += 90 * time.Second
		}
		age += time.Duration(200+rng.IntN(900)) * time.Millisecond
		if age > 50*time.Minute {
			age = 2 * time.Minute
		}
		out = append(out, past{tool: lint, args: lintArgs(rng), age: age})
	}
	// Oldest first, so that seq and createdAt agree.
	slices.SortStableFunc(out, func(a, b past) int { return cmp.Compare(b.age, a.age) })
	return out
}

// find is the tool of a name, whether it is listed yet or not.
func (s *Server) find(name string) *tool {
	for _, t := range s.tools {
		if t.name == name {
			return t
		}
	}
	return nil
}

func lintArgs(rng *rand.Rand) json.RawMessage {
	dirs := []string{"api", "auth", "billing", "cache", "cli", "config", "export", "ledger", "mail", "queue", "router", "search", "store", "sync", "web"}
	files := []string{"client", "config", "decode", "doc", "encode", "errors", "handler", "index", "model", "options", "parse", "pool", "retry", "server", "stream", "types", "validate", "worker"}
	return enc(map[string]string{"path": fmt.Sprintf("%s/%s.go", dirs[rng.IntN(len(dirs))], files[rng.IntN(len(files))])})
}

// arrivals arranges n tasks that come by themselves. They end on their own or
// ask a person; the ones that hang are left to those who want them.
func (s *Server) arrivals(from time.Time, n int, rng *rand.Rand) {
	e := s.engine
	var names []string
	for _, w := range []struct {
		tool  string
		times int
	}{{"lint_file", 6}, {"build", 4}, {"run_tests", 2}, {"deploy_release", 2}, {"report_coverage", 1}, {"security_scan", 1}, {"queue_assay", 3}, {"calibrate_probe", 1}, {"write_release_notes", 1}, {"sign_artifact", 1}, {"provision_preview", 1}} {
		if s.find(w.tool) != nil {
			for range w.times {
				names = append(names, w.tool)
			}
		}
	}
	due := from
	for range n {
		due = due.Add(e.scaled(time.Duration(12+rng.IntN(30)) * time.Second))
		t := s.find(names[rng.IntN(len(names))])
		args := lintArgs(rng)
		times := 1
		if t.name == "lint_file" {
			times = 1 + rng.IntN(6)
		} else {
			args = json.RawMessage(t.sample[rng.IntN(len(t.sample))])
		}
		e.at(due, func() {
			for i := range times {
				if i > 0 {
					args = lintArgs(rng)
				}
				_ = e.beginLocked(start{tool: t, args: args, caps: allCaps, begun: func(j *job) {
					s.mu.Lock()
					f := s.arrive
					s.mu.Unlock()
					if f != nil {
						f(Handle{j.id, j.tool.name, j.args})
					}
				}})
			}
		})
	}
}
