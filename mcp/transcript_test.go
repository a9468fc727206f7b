package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/taskmodel"
)

// TestTranscripts plays the conversations in testdata/*.txtar: what a person
// does, what we send (compared, and checked against the official schema), what
// the server says, and what the monitor hears of it. Each names the section of
// the specification that it proves. The language, line by line:
//
//	C> [label:] METHOD {…}   the client sends this request or notification with
//	                         at least these params ("*" any, "-" none, "?x" any,
//	                         kept as $x)
//	C< [label:] {…}          the client answers the server's request so
//	S> [label:] {…}          the server answers the labelled request, else the last
//	S> METHOD {…}            the server notifies
//	S? id METHOD {…}         the server asks, with this id as it stands
//	S! …                     the server sends these bytes
//	S. …                     the server says why and is gone
//	U> VERB …                a person does something
//	U= words                 and this came of it (a part of it, in order)
//	H= words                 the monitor hears this next (a part of it)
//	..  1h                   time passes
//	--                       nothing more was sent, done or heard
//
// An archive may have the files "options" (key value lines) and "open" (the
// handshake, else that of a server with all of 2025-11-25) beside "transcript".
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txtar"), func(t *testing.T) {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			parts := map[string]string{}
			for _, p := range txtar.Parse(b).Files {
				parts[p.Name] = string(p.Data)
			}
			synctest.Test(t, func(t *testing.T) { playArchive(t, parts) })
		})
	}
}

// openCore is the handshake with a server that has all of 2025-11-25.
const openCore = `
C> server/discover {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
S! {"jsonrpc":"2.0","id":$last,"error":{"code":-32601,"message":"Method not found"}}
C> initialize {"protocolVersion": "2025-11-25", "clientInfo": {"name": "mcptasks", "version": "1.2.3"}}
S> {"result": {"protocolVersion": "2025-11-25", "capabilities": {"logging": {}, "tools": {"listChanged": true}, "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}}, "serverInfo": {"name": "scripted", "version": "1"}}}
C> notifications/initialized
`

func playArchive(t *testing.T, parts map[string]string) {
	p := &player{t: t, vars: map[string]string{}, heard: make(chan string, 1000), did: make(chan string, 100)}
	gen, kind := taskmodel.GenCore, "stdio"
	o := Options{Name: "srv", ClientName: "mcptasks", ClientVersion: "1.2.3", Handler: p}
	for _, l := range strings.Split(strings.TrimSpace(parts["options"]), "\n") {
		k, v, _ := strings.Cut(strings.TrimSpace(l), " ")
		n, _ := strconv.Atoi(v)
		switch k {
		case "":
		case "schema":
			gen = taskmodel.Generation(v)
		case "kind":
			kind = v
		case "root":
			roots := []Root{{URI: v}}
			o.Roots = func() []Root { return roots }
		case "era":
			o.Era = v
		case "generation":
			o.Generation = taskmodel.Generation(v)
		case "no-receiver":
			o.NoReceiver = true
		case "max-tasks":
			o.Receiver.MaxTasks = n
		case "page-size":
			o.Receiver.PageSize = n
		case "per-second":
			o.Receiver.PerSecond = n
		default:
			t.Fatalf("no such option: %s", k)
		}
	}
	s, d := newScript(t, gen, kind)
	p.s, o.Dialer = s, d
	t.Cleanup(func() {
		s.conn.Close(context.Background())
		synctest.Wait()
	})
	open := parts["open"]
	if open == "" {
		open = openCore
	}
	connected := make(chan error, 1)
	go func() {
		var err error
		p.c, err = Connect(context.Background(), o)
		connected <- err
	}()
	p.play(open)
	err := <-connected
	if want := strings.TrimSpace(parts["refused"]); want != "" {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("Connect: want %q, got %v", want, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
		defer stop()
		p.c.Close(ctx, true)
		synctest.Wait()
	})
	p.play(parts["transcript"])
}

// A player plays one transcript and is the Handler that hears.
type player struct {
	t     *testing.T
	c     *Client
	s     *script
	vars  map[string]string
	heard chan string
	did   chan string
	drop  context.CancelFunc

	mu    sync.Mutex
	asked []taskmodel.Question
}

var variable = regexp.MustCompile(`\$[A-Za-z][A-Za-z0-9]*`)

func (p *player) play(transcript string) {
	for n, line := range strings.Split(transcript, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		line = variable.ReplaceAllStringFunc(line, func(v string) string {
			if x, ok := p.vars[v[1:]]; ok {
				return x
			}
			return v
		})
		if p.line(line); p.t.Failed() {
			p.t.Fatalf("line %d: %s", n+1, line)
		}
	}
}

func (p *player) line(line string) {
	t := p.t
	synctest.Wait()
	if line == "--" {
		p.s.quiet()
		select {
		case h := <-p.heard:
			t.Errorf("heard too: %s", h)
		case d := <-p.did:
			t.Errorf("came of it too: %s", d)
		default:
		}
		return
	}
	dir, rest := line[:2], strings.TrimSpace(line[2:])
	label := "last"
	if head, tail, ok := strings.Cut(rest, " "); ok && strings.HasSuffix(head, ":") && !strings.HasPrefix(head, "{") && dir != "U=" && dir != "H=" {
		label, rest = strings.TrimSuffix(head, ":"), strings.TrimSpace(tail)
	}
	head, tail, _ := strings.Cut(rest, " ")
	tail = strings.TrimSpace(tail)
	switch dir {
	case "C>":
		m := p.s.next()
		if m.method != head {
			t.Errorf("the client sent %s", m.raw)
			return
		}
		p.match(tail, m.params, m.raw)
		if m.id != nil {
			p.vars[label] = string(m.id)
			p.vars["last"] = string(m.id)
		}
	case "C<":
		m := p.s.next()
		if m.method != "" {
			t.Errorf("the client sent %s", m.raw)
			return
		}
		p.match(rest, m.raw, m.raw)
		if id := p.vars[label]; label != "last" && string(m.id) != id {
			t.Errorf("the client answered %s, not %s: %s", m.id, id, m.raw)
		}
	case "S>":
		if strings.HasPrefix(rest, "{") {
			p.s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s`, p.vars[label], rest[1:]))
			return
		}
		p.s.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, head, orEmpty(tail)))
	case "S?":
		method, params, _ := strings.Cut(tail, " ")
		p.s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, head, method, orEmpty(params)))
	case "S!":
		p.s.loose = true
		p.s.send(rest)
		p.s.loose = false
	case "S.":
		if err := p.s.conn.Close(context.Background()); err != nil {
			t.Error(err)
		}
	case "U>":
		p.do(head, tail)
	case "U=":
		p.expect(p.did, rest)
	case "H=":
		p.expect(p.heard, rest)
	case "..":
		d, err := time.ParseDuration(rest)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(d)
		synctest.Wait()
	default:
		t.Fatalf("no such line: %s", line)
	}
}

func orEmpty(s string) string {
	if s == "" {
		return "{}"
	}
	return s
}

// expect takes the next of a channel; words must be a part of it.
func (p *player) expect(from chan string, words string) {
	select {
	case got := <-from:
		if !strings.Contains(got, words) {
			p.t.Errorf("got %q", got)
		}
	case <-time.After(4 * time.Minute):
		p.t.Error("nothing came")
	}
}

// match checks that got holds what want has, and keeps what "?x" stands for.
func (p *player) match(want string, got, raw json.RawMessage) {
	if want == "" {
		return
	}
	var w, g any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		p.t.Fatalf("%s: %v", want, err)
	}
	if got == nil {
		got = json.RawMessage("{}")
	}
	if err := json.Unmarshal(got, &g); err != nil {
		p.t.Errorf("%s: %v", raw, err)
	}
	if at := lacks("", p.keep(w, g), g); at != "" {
		p.t.Errorf("%s\ngot %s", at, raw)
	}
}

func (p *player) keep(want, got any) any {
	switch w := want.(type) {
	case string:
		if w == "*" {
			return got
		}
		if name, ok := strings.CutPrefix(w, "?"); ok {
			p.vars[name] = fmt.Sprint(got)
			return got
		}
	case map[string]any:
		g, _ := got.(map[string]any)
		out := maps.Clone(w)
		for k, v := range w {
			if gv, ok := g[k]; ok && v != "-" {
				out[k] = p.keep(v, gv)
			}
		}
		return out
	case []any:
		g, _ := got.([]any)
		out := slices.Clone(w)
		for i, v := range w {
			if i < len(g) {
				out[i] = p.keep(v, g[i])
			}
		}
		return out
	}
	return want
}

// do carries out one line of a person, beside the transcript.
func (p *player) do(verb, rest string) {
	ctx, cancel := context.WithCancel(context.Background())
	first, more, _ := strings.Cut(rest, " ")
	c := p.c
	var f func() string
	switch verb {
	case "drop":
		cancel()
		p.drop()
		return
	case "info":
		f = func() string {
			i := c.Info()
			return fmt.Sprintf("%s %s %s %+v", i.Era, i.ProtocolVersion, i.Generation, i.Can)
		}
	case "tools":
		f = func() string {
			tools, err := c.Tools(ctx)
			var b strings.Builder
			for _, t := range tools {
				fmt.Fprintf(&b, "%s %s why=%q ro=%t destr=%t; ", t.Name, t.TaskSupport, t.WhyNotTask, t.ReadOnly, t.Destructive)
			}
			return b.String() + words(err)
		}
	case "start", "plain":
		call := StartCall{Tool: first, Plain: verb == "plain", CallID: "call-" + first}
		if ttl, args, ok := strings.Cut(more, " "); ok && strings.HasPrefix(ttl, "ttl=") {
			call.TTL, _ = time.ParseDuration(ttl[4:])
			more = args
		}
		call.Args = json.RawMessage(more)
		f = func() string {
			st, err := c.Tasks().Start(ctx, call)
			if err != nil {
				return words(err)
			}
			if st.TaskID != "" {
				return "task " + snap(st.Snapshot) + noted(st.Note) + " model=" + strconv.Quote(st.Snapshot.ModelNote)
			}
			return out(st.Outcome) + noted(st.Note)
		}
	case "get":
		f = func() string { return snapOr(c.Tasks().Get(ctx, first)) }
	case "list":
		f = func() string {
			page, err := c.Tasks().List(ctx, first, nil)
			if err != nil {
				return words(err)
			}
			var b strings.Builder
			for _, s := range page.Tasks {
				b.WriteString(snap(s) + "; ")
			}
			return b.String() + "next=" + strconv.Quote(page.Next)
		}
	case "result":
		f = func() string {
			o, err := c.Tasks().Result(ctx, first)
			if err != nil {
				return words(err)
			}
			return out(o)
		}
	case "cancel":
		f = func() string {
			s, err := c.Tasks().Cancel(ctx, first)
			if err != nil {
				return words(err)
			}
			if s == nil {
				return "cancel asked"
			}
			return "cancel " + snap(*s)
		}
	case "delete":
		f = func() string { return words(c.Tasks().Delete(ctx, first)) }
	case "answer":
		action, content, _ := strings.Cut(more, " ")
		f = func() string {
			id := taskmodel.QuestionID{Server: "srv", ID: "none"}
			p.mu.Lock()
			for _, q := range p.asked {
				if q.Key == first {
					id = q.ID
				}
			}
			p.mu.Unlock()
			a := taskmodel.Answer{Question: id, Action: taskmodel.Action(action)}
			if content != "" {
				a.Content = json.RawMessage(content)
			}
			return words(c.Answer(ctx, a))
		}
	case "ping":
		f = func() string { return words(c.Ping(ctx)) }
	case "level":
		f = func() string { return words(c.SetLogLevel(ctx, first)) }
	case "roots":
		f = func() string { return words(c.RootsChanged(ctx)) }
	default:
		p.t.Fatalf("nobody can %s", verb)
	}
	p.drop = cancel
	go func() {
		defer cancel()
		p.did <- f()
	}()
}

// words are an error and what it is found by; "done" is none.
func words(err error) string {
	if err == nil {
		return "done"
	}
	s := err.Error()
	for _, k := range []struct {
		err  error
		name string
	}{
		{ErrUnsupported, "ErrUnsupported"}, {ErrNotFound, "ErrNotFound"}, {ErrTerminal, "ErrTerminal"}, {ErrClosed, "ErrClosed"},
		{ErrTaskRequired, "ErrTaskRequired"}, {ErrNoQuestion, "ErrNoQuestion"}, {context.Canceled, "Canceled"}, {ErrSessionLost, "ErrSessionLost"},
	} {
		if errors.Is(err, k.err) {
			s += " [" + k.name + "]"
		}
	}
	var rpc *taskmodel.RPCError
	if errors.As(err, &rpc) {
		s += fmt.Sprintf(" [%d]", rpc.Code)
	}
	var u *URLElicitationError
	if errors.As(err, &u) {
		s += fmt.Sprintf(" %+v", u.Elicitations)
	}
	return s
}

func snapOr(s taskmodel.Snapshot, err error) string {
	if err != nil {
		return words(err)
	}
	return snap(s)
}

func snap(s taskmodel.Snapshot) string {
	b := fmt.Sprintf("%s %s %q", s.ID, s.Status, s.StatusMessage)
	switch {
	case s.TTL.Unlimited:
		b += " ttl=unlimited"
	case s.TTL.Known:
		b += " ttl=" + s.TTL.Duration.String()
	}
	if s.PollInterval != 0 {
		b += " poll=" + s.PollInterval.String()
	}
	if s.Missing != nil {
		b += fmt.Sprintf(" missing=%v", s.Missing)
	}
	if s.Lenient != nil {
		b += fmt.Sprintf(" lenient=%q", s.Lenient)
	}
	return b
}

func out(o taskmodel.Outcome) string {
	s := "result " + string(o.Result)
	if o.Err != nil {
		s = fmt.Sprintf("outcome error %d %s", o.Err.Code, o.Err.Message)
	}
	if o.Note != "" {
		s += noted(o.Note)
	}
	return s
}

func noted(n string) string {
	if n == "" {
		return ""
	}
	return " note=" + strconv.Quote(n)
}

// What the player hears, as words.

func (p *player) Snapshot(o taskmodel.Observation) {
	p.heard <- string(o.Source) + " " + snap(o.Snapshot)
}
func (p *player) Progress(task, call string, g taskmodel.Progress) {
	p.heard <- fmt.Sprintf("progress task=%q call=%q %v/%v %t %q", task, call, g.Value, g.Total, g.HasTotal, g.Message)
}
func (p *player) Asked(q taskmodel.Question) {
	p.mu.Lock()
	p.asked = append(p.asked, q)
	p.mu.Unlock()
	p.heard <- fmt.Sprintf("asked %s key=%s task=%s tool=%q %q url=%q", q.Kind, q.Key, q.Task, q.Tool, q.Message, q.URL)
}
func (p *player) Withdrawn(id taskmodel.QuestionID, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range p.asked {
		if q.ID == id {
			p.heard <- "withdrawn " + q.Key + ": " + why
			return
		}
	}
	p.heard <- "withdrawn, never asked: " + id.ID
}
func (p *player) ElicitationComplete(id string) { p.heard <- "elicitation complete " + id }
func (p *player) Log(l taskmodel.LogLine) {
	p.heard <- fmt.Sprintf("log %s %s task=%q %s", l.Level, l.Logger, l.Task, l.Text)
}
func (p *player) ToolsChanged()            { p.heard <- "tools changed" }
func (p *player) Pushing(ids []string)     { p.heard <- fmt.Sprintf("pushing %v", ids) }
func (p *player) Wire(taskmodel.WireEntry) {}
func (p *player) ReceiverTask(o taskmodel.Observation, i ReceiverInfo) {
	p.heard <- fmt.Sprintf("receiver %s %s %s %q", i.Event, i.Method, o.Status, o.StatusMessage)
}

var _ jsonrpc.Conn = spy{}
