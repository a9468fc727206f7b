//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// firstFrame: from exec to the first screen, with no server.
func firstFrame(b *bench) error {
	var ours, theirs []time.Duration
	for range b.rounds {
		s, err := b.ours(b.state())
		if err != nil {
			return err
		}
		d, err := s.until(s.from, 20*time.Second, has("mcptasks"))
		s.close()
		if err != nil {
			return err
		}
		ours = append(ours, d)
		if b.inspector == "" {
			continue
		}
		if s, err = b.theirs("http://127.0.0.1:9/mcp"); err != nil {
			return err
		}
		d, err = s.until(s.from, 20*time.Second, has("MCP Servers"))
		s.close()
		if err != nil {
			return err
		}
		theirs = append(theirs, d)
	}
	note := ""
	if len(theirs) > 0 {
		note = times(median(theirs), median(ours))
	}
	b.put("exec to the first frame, no server", spread(ours), spread(theirs), note)
	return nil
}

// restored: from exec to the first frame and to all rows, with 10,000 tasks
// remembered and a server that takes connections and says nothing.
func restored(b *bench) error {
	v, err := serve(script{tasks: 10_000, page: 500, poll: time.Minute})
	if err != nil {
		return err
	}
	state := b.state()
	s, err := b.ours(state, v.url)
	if err != nil {
		return err
	}
	_, err = s.until(s.from, time.Minute, has("10,000 tasks"))
	s.close()
	v.close()
	if err != nil {
		return fmt.Errorf("fill the journal: %w", err)
	}
	w, err := serveAt(v.http.Addr, script{mute: true})
	if err != nil {
		return err
	}
	defer w.close()
	var first, rows []time.Duration
	for range b.rounds {
		s, err := b.ours(state, w.url)
		if err != nil {
			return err
		}
		d, err := s.until(s.from, 20*time.Second, has("mcptasks"))
		if err == nil {
			first = append(first, d)
			if d, err = s.until(s.from, 20*time.Second, has("10,000 tasks")); err == nil {
				rows = append(rows, d)
			}
		}
		s.close()
		if err != nil {
			return err
		}
	}
	b.put("exec to the first frame, 10,000 tasks in the journal, the server silent", spread(first), "", "")
	b.put("the same, to all 10,000 rows", spread(rows), "", "")
	return nil
}

// listing: from exec to the last task shown, against the bare requests.
func listing(b *bench) error {
	for _, c := range []struct {
		n    int
		away time.Duration
	}{{100, 0}, {4_900, 0}, {6_000, 0}, {6_000, 5 * time.Millisecond}, {100_000, 0}} {
		n, page := c.n, 50
		if n > 10_000 {
			page = 1000
		}
		v, err := serve(script{tasks: n, page: page, poll: time.Minute, away: c.away})
		if err != nil {
			return err
		}
		var ours, first, bare, theirs []time.Duration
		var used []time.Duration
		none := 0
		rounds := b.rounds
		if n > 1000 {
			rounds = min(rounds, 5)
		}
		all := has(thousands(n) + " tasks")
		for range rounds {
			s, err := b.ours(b.state(), v.url)
			if err != nil {
				return err
			}
			d, err := s.until(s.from, 2*time.Minute, func(t string) bool { return strings.Contains(t, "copy") || strings.Contains(t, "Copying part") })
			if err == nil {
				first = append(first, d)
				d, err = s.until(s.from, 2*time.Minute, all)
			}
			s.close()
			if err != nil {
				return fmt.Errorf("%d tasks: %w\n%s", n, err, s.text())
			}
			ours, used = append(ours, d), append(used, s.used())
			if d, err = v.bare(); err != nil {
				return err
			}
			bare = append(bare, d)
			if b.inspector == "" || n > 10_000 || c.away > 0 {
				continue
			}
			if s, err = b.theirs(v.url); err != nil {
				return err
			}
			if _, err = s.until(s.from, 20*time.Second, has("MCP Servers")); err == nil {
				s.press("c")
				_, err = s.until(s.from, 20*time.Second, has("● connected"))
			}
			if err == nil {
				s.press("s")
				d, err = s.until(s.from, 20*time.Second, has(fmt.Sprintf("Tasks (%d)", n)))
			}
			switch {
			case err == nil:
				theirs = append(theirs, d)
			case errors.Is(err, errLate):
				none++
			}
			s.close()
			if err != nil && !errors.Is(err, errLate) {
				return err
			}
		}
		v.close()
		shown := spread(theirs)
		if none > 0 {
			shown = strings.TrimSpace(fmt.Sprintf("%s not within 20 s (%d of %d runs)", shown, none, rounds))
		}
		ratio := ""
		if len(theirs) > 0 {
			ratio = times(median(theirs), median(ours))
		}
		if n == 100 {
			b.put("exec to the first page of a server on the screen", spread(first), "", "")
		}
		where := ""
		if c.away > 0 {
			where = ", the server " + short(c.away) + " away"
		}
		b.put(fmt.Sprintf("exec to all of %s tasks, %d a page%s", thousands(n), page, where), spread(ours), shown,
			strings.TrimPrefix(ratio+", "+short(median(used))+" of processor time to its end", ", "))
		b.put("bare loop of the same requests", spread(bare), "", times(median(ours), median(bare))+" with start-up, "+
			times(median(ours)-median(first)+median(bare)/time.Duration(max(1, n/page)), median(bare))+" from the first page on")
	}
	return nil
}

// memory: resident and anonymous, ten seconds after all is listed.
func memory(b *bench) error {
	for _, n := range []int{100, 10_000, 100_000} {
		page := max(50, n/100)
		v, err := serve(script{tasks: n, page: page, poll: time.Minute})
		if err != nil {
			return err
		}
		s, err := b.ours(b.state(), v.url)
		if err != nil {
			return err
		}
		_, err = s.until(s.from, 2*time.Minute, has(thousands(n)+" tasks"))
		if err != nil {
			s.close()
			return err
		}
		time.Sleep(10 * time.Second)
		l := s.load()
		s.close()
		theirs := ""
		if b.inspector != "" && n == 100 {
			if s, err = b.theirs(v.url); err != nil {
				return err
			}
			if _, err = s.until(s.from, 20*time.Second, has("MCP Servers")); err == nil {
				s.press("c")
				_, err = s.until(s.from, 20*time.Second, has("● connected"))
				s.press("s")
			}
			if err == nil {
				time.Sleep(10 * time.Second)
				i := s.load()
				theirs = fmt.Sprintf("%s, %s anonymous", mb(i.rss), mb(i.anon))
			}
			s.close()
			if err != nil {
				return err
			}
		}
		v.close()
		b.put(fmt.Sprintf("memory, one server, %s tasks", thousands(n)), fmt.Sprintf("%s, %s anonymous", mb(l.rss), mb(l.anon)), theirs, "")
	}
	return nil
}

// idle: what a minute costs in which nothing happens but polls.
func idle(b *bench) error {
	for _, c := range []struct {
		what string
		s    script
	}{
		{"idle, 1,000 working tasks polled each 30 s", script{tasks: 1000, page: 100, poll: 30 * time.Second, working: func(int) bool { return true }}},
		{"idle, nothing shown that ticks", script{}},
	} {
		v, err := serve(c.s)
		if err != nil {
			return err
		}
		var s *screen
		if c.s.tasks > 0 {
			s, err = b.ours(b.state(), v.url)
		} else {
			s, err = b.ours(b.state())
		}
		if err != nil {
			return err
		}
		want := "mcptasks"
		if c.s.tasks > 0 {
			want = thousands(c.s.tasks) + " tasks"
		}
		if _, err = s.until(s.from, time.Minute, has(want)); err != nil {
			s.close()
			return err
		}
		time.Sleep(10 * time.Second)
		cpu, n, r := s.load().cpu, s.bytes.Load(), v.requests.Load()
		time.Sleep(time.Minute)
		cpu, n, r = s.load().cpu-cpu, s.bytes.Load()-n, v.requests.Load()-r
		s.close()
		v.close()
		b.put(c.what+", a minute", fmt.Sprintf("%.2f %% of a core, %d bytes a second to the terminal, %.1f requests a second", cpu.Seconds()/60*100, n/60, float64(r)/60), "", "")
	}
	return nil
}

// keys: from a key to the frame that shows its effect, while updates come in.
func keys(b *bench) error {
	for _, n := range []int{10_000, 100_000} {
		v, err := serve(script{tasks: n, page: n / 20, poll: time.Minute, push: 1000, working: func(int) bool { return true }})
		if err != nil {
			return err
		}
		s, err := b.ours(b.state(), v.url)
		if err != nil {
			return err
		}
		if _, err = s.until(s.from, 2*time.Minute, has(thousands(n)+" tasks")); err != nil {
			s.close()
			return err
		}
		var d []time.Duration
		for i := range 300 {
			// A filter's text is on the screen as it is typed.
			word := fmt.Sprintf("zq%03d", i)
			s.press("/")
			if _, err = s.until(time.Now(), 10*time.Second, has("enter accept")); err != nil {
				break
			}
			s.press(word[:4])
			if _, err = s.until(time.Now(), 10*time.Second, has(word[:4])); err != nil {
				break
			}
			from := time.Now()
			s.press(word[4:])
			var k time.Duration
			if k, err = s.until(from, 10*time.Second, has(word)); err != nil {
				break
			}
			d = append(d, k)
			s.press("\x1b")
			if _, err = s.until(time.Now(), 10*time.Second, func(t string) bool { return !strings.Contains(t, word) }); err != nil {
				break
			}
		}
		text := s.text()
		s.close()
		v.close()
		if err != nil {
			return fmt.Errorf("%w; the screen:\n%s", err, text)
		}
		b.put(fmt.Sprintf("a key in the filter to its frame, %s tasks, 1,000 updates a second", thousands(n)),
			fmt.Sprintf("median %s, p99 %s", short(median(d)), short(p99(d))), "", "300 keys")
	}
	return nil
}

// polling: requests and processor time for 10,000 working tasks.
func polling(b *bench) error {
	v, err := serve(script{tasks: 10_000, page: 100, poll: 5 * time.Second, working: func(int) bool { return true }})
	if err != nil {
		return err
	}
	defer v.close()
	s, err := b.ours(b.state(), v.url)
	if err != nil {
		return err
	}
	defer s.close()
	if _, err = s.until(s.from, time.Minute, has("10,000 tasks")); err != nil {
		return err
	}
	time.Sleep(10 * time.Second)
	cpu, r := s.load().cpu, v.requests.Load()
	time.Sleep(time.Minute)
	cpu, r = s.load().cpu-cpu, v.requests.Load()-r
	b.put("10,000 working tasks at 5 s, 100 a page, a minute", fmt.Sprintf("%.1f requests a second, %.1f %% of a core", float64(r)/60, cpu.Seconds()/60*100), "", "")
	return nil
}

// headless: `ls -o jsonl` over 10,000 tasks against the bare requests, with an
// empty state folder and again with what it then holds.
func headless(b *bench) error {
	v, err := serve(script{tasks: 10_000, page: 100, poll: time.Minute})
	if err != nil {
		return err
	}
	defer v.close()
	var bare []time.Duration
	took, used := map[bool][]time.Duration{}, map[bool][]time.Duration{}
	for range b.rounds {
		state := b.state()
		for _, again := range []bool{false, true} {
			from := time.Now()
			cmd := exec.Command(b.program, append([]string{"ls", "-o", "jsonl"}, b.args(state, []string{v.url})...)...)
			cmd.Env = append(os.Environ(), "HOME="+b.dir)
			out, err := cmd.Output()
			if err != nil {
				return fmt.Errorf("ls: %w", err)
			}
			took[again] = append(took[again], time.Since(from))
			used[again] = append(used[again], cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
			if n := bytes.Count(out, []byte("\n")); n != 10_000 {
				return fmt.Errorf("ls wrote %d lines", n)
			}
		}
		d, err := v.bare()
		if err != nil {
			return err
		}
		bare = append(bare, d)
	}
	for _, again := range []bool{false, true} {
		what := "`ls -o jsonl` over 10,000 tasks, 100 a page, for the first time"
		if again {
			what = "the same again, the unfinished ones known"
		}
		b.put(what, spread(took[again]), "", short(median(took[again])-median(bare))+" over the bare requests, "+short(median(used[again]))+" of processor time")
	}
	return nil
}

var group = regexp.MustCompile(`(\d)(\d{3})$`)

func thousands(n int) string { return group.ReplaceAllString(fmt.Sprint(n), "$1,$2") }
