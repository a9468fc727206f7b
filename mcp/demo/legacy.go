package demo

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

// legacy is what the two generations of the handshake era share: initialize,
// ping, logging, the listing of tools, plain calls, and requests to the client.
// What is said of tasks is core.go's and draft.go's.
//
// Its fields belong to the engine's mutex, which is also held in event; the
// handshake's fields are written before anything else of the session can be.
type legacy struct {
	s        *session
	versions []string // supported, newest first
	features func(version string) json.RawMessage
	known    []string // methods, to tell -32601 from "initialize first"
	related  string   // the _meta key of the generation
	// ready is called when the client says that it is initialized.
	ready func()

	version string
	caps    clientCaps
	begun   bool // initialize was answered
	live    bool // notifications/initialized came: requests to the client may go
	level   int
	plain   map[*job]*inbound     // calls that are no tasks
	beside  map[*job]*inbound     // the calls of tasks that are answered in the end (draft); nil else
	asked   map[*question]*asking // our open requests
	visits  map[string]bool       // URL elicitations put to this client
}

// asking is a question on the wire.
type asking struct {
	job   *job
	key   string
	out   *outbound
	about *inbound
	// abandon, when set, is called with the engine's mutex held when the
	// question is withdrawn, instead of notifications/cancelled.
	abandon func()
}

func newLegacy(s *session) *legacy {
	return &legacy{s: s, plain: map[*job]*inbound{}, asked: map[*question]*asking{}, visits: map[string]bool{}, level: 1}
}

// handle answers what is no task; false means that the method is the
// generation's.
func (l *legacy) handle(r *inbound) bool {
	e := l.s.srv.engine
	switch r.method {
	case "ping":
		r.reply(json.RawMessage("{}"))
		return true
	case "initialize":
		l.initialize(r)
		return true
	}
	e.mu.Lock()
	begun := l.begun
	e.mu.Unlock()
	if !slices.Contains(l.known, r.method) {
		r.fail(codeMethod, "Method not found: %s", r.method)
		return true
	}
	if !begun {
		r.fail(codeRequest, "%s before initialize", r.method)
		return true
	}
	if r.method == "logging/setLevel" {
		l.setLevel(r)
		return true
	}
	return false
}

// initialize (2025-11-25 basic/lifecycle): the version that is asked for when
// it is supported, else the newest.
func (l *legacy) initialize(r *inbound) {
	var p struct {
		Version string          `json:"protocolVersion"`
		Caps    json.RawMessage `json:"capabilities"`
		Client  *struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"clientInfo"`
	}
	if json.Unmarshal(r.params, &p) != nil || p.Version == "" || !isObject(p.Caps) || p.Client == nil || p.Client.Name == "" {
		r.fail(codeParams, "initialize needs protocolVersion, capabilities and clientInfo")
		return
	}
	e := l.s.srv.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if l.begun {
		r.fail(codeRequest, "already initialized")
		return
	}
	l.version = l.versions[0]
	if slices.Contains(l.versions, p.Version) {
		l.version = p.Version
	}
	l.caps = readLegacyCaps(p.Caps)
	l.begun = true
	r.reply(enc(struct {
		Version string          `json:"protocolVersion"`
		Caps    json.RawMessage `json:"capabilities"`
		Server  serverInfo      `json:"serverInfo"`
		Words   string          `json:"instructions"`
	}{l.version, l.features(l.version), l.s.srv.info(), instructions}))
}

// notification takes what the handshake era's clients notify.
func (l *legacy) notification(method string, params json.RawMessage) bool {
	e := l.s.srv.engine
	switch method {
	case "notifications/initialized":
		e.mu.Lock()
		defer e.mu.Unlock()
		if l.begun && !l.live {
			l.live = true
			if l.caps.roots {
				l.s.call("roots/list", nil, "", func(json.RawMessage, *rpcError) {})
			}
			if l.ready != nil {
				l.ready()
			}
		}
		return true
	case "notifications/roots/list_changed", "notifications/progress", "notifications/tasks/status":
		return true
	}
	return false
}

// readLegacyCaps reads ClientCapabilities. An elicitation capability that
// names no mode is form mode (2025-11-25 client/elicitation, Capabilities).
func readLegacyCaps(b json.RawMessage) clientCaps {
	var c struct {
		Elicitation *struct {
			Form json.RawMessage `json:"form"`
			URL  json.RawMessage `json:"url"`
		} `json:"elicitation"`
		Sampling json.RawMessage `json:"sampling"`
		Roots    json.RawMessage `json:"roots"`
		Tasks    *struct {
			Requests struct {
				Elicitation struct {
					Create json.RawMessage `json:"create"`
				} `json:"elicitation"`
				Sampling struct {
					CreateMessage json.RawMessage `json:"createMessage"`
				} `json:"sampling"`
			} `json:"requests"`
		} `json:"tasks"`
	}
	_ = json.Unmarshal(b, &c)
	out := clientCaps{sampling: isObject(c.Sampling), roots: isObject(c.Roots)}
	if c.Elicitation != nil {
		out.url = isObject(c.Elicitation.URL)
		out.form = isObject(c.Elicitation.Form) || !out.url
	}
	if c.Tasks != nil {
		out.taskElicitation = isObject(c.Tasks.Requests.Elicitation.Create)
		out.taskSample = isObject(c.Tasks.Requests.Sampling.CreateMessage)
	}
	return out
}

var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

func (l *legacy) setLevel(r *inbound) {
	var p struct {
		Level string `json:"level"`
	}
	_ = json.Unmarshal(r.params, &p)
	n := slices.Index(levels, p.Level)
	if n < 0 {
		r.fail(codeParams, "no log level %q", p.Level)
		return
	}
	e := l.s.srv.engine
	e.mu.Lock()
	l.level = n
	e.mu.Unlock()
	r.reply(json.RawMessage("{}"))
}

// listTools answers tools/list; show decides what a tool looks like, nil
// leaves it out.
func (l *legacy) listTools(r *inbound, show func(*tool) *listedTool) {
	var p struct {
		Cursor *string `json:"cursor"`
	}
	if json.Unmarshal(orEmpty(r.params), &p) != nil || p.Cursor != nil {
		r.fail(codeParams, "Invalid cursor")
		return
	}
	tools := []*listedTool{}
	for _, t := range l.s.srv.listed() {
		if lt := show(t); lt != nil {
			tools = append(tools, lt)
		}
	}
	r.reply(enc(map[string]any{"tools": tools}))
}

// A listedTool is a tool on the wire.
type listedTool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"inputSchema"`
	Output      json.RawMessage `json:"outputSchema,omitempty"`
	Execution   *execution      `json:"execution,omitempty"`
}

type execution struct {
	TaskSupport string `json:"taskSupport"`
}

func (t *tool) listed() *listedTool {
	return &listedTool{Name: t.name, Title: t.title, Description: t.description, Input: t.input, Output: t.output}
}

// A toolCall is the params of tools/call in all generations.
type toolCall struct {
	Name *string                    `json:"name"`
	Args json.RawMessage            `json:"arguments"`
	Task json.RawMessage            `json:"task"`
	Meta map[string]json.RawMessage `json:"_meta"`
	tool *tool
}

// readCall reads a tools/call; false means that it was refused.
func readCall(r *inbound) (toolCall, bool) {
	var c toolCall
	if json.Unmarshal(orEmpty(r.params), &c) != nil || c.Name == nil {
		r.fail(codeParams, "tools/call needs a name, and objects for arguments and _meta")
		return c, false
	}
	if string(c.Args) == "null" || len(c.Args) == 0 {
		c.Args = json.RawMessage("{}")
	}
	if !isObject(c.Args) {
		r.fail(codeParams, "arguments is no object")
		return c, false
	}
	if t, ok := c.Meta["progressToken"]; ok && !validID(t) {
		r.fail(codeParams, "a progressToken is a string or an integer")
		return c, false
	}
	if c.tool = r.s.srv.tool(*c.Name); c.tool == nil {
		r.fail(codeParams, "Unknown tool: %s", *c.Name)
		return c, false
	}
	return c, true
}

// job is the start of a call's job. Arguments that break the tool's schema are
// the tool's own error (2025-11-25 server/tools, Error Handling).
func (c toolCall) job(s *session, caps clientCaps, hidden bool) start {
	st := start{tool: c.tool, args: c.Args, hidden: hidden, owner: s.owner, caps: caps, token: c.Meta["progressToken"]}
	if why := s.srv.engine.check.violations(c.tool.input, c.Args); why != "" {
		st.steps = join(toolError("Arguments not accepted: " + why))
	} else if lacks := caps.lacks(c.tool.needs); lacks != "" {
		st.steps = join(stage(time.Second, "Preparing", 0, 0),
			toolError("This tool has to ask a person, and the client did not declare "+lacks+"."))
	}
	return st
}

// callPlain runs a tool whose answer is the call's.
func (l *legacy) callPlain(r *inbound, st start) {
	e := l.s.srv.engine
	st.hidden = true
	st.begun = func(j *job) { l.plain[j] = r }
	r.whenGivenUp(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		for j, have := range l.plain {
			if have == r {
				delete(l.plain, j)
				e.end(j, outcome{status: cancelled})
				return
			}
		}
	})
	if err := e.begin(st); err != nil {
		r.fail(codeInternal, "%v", err)
	}
}

// event does what both generations do with what happens.
func (l *legacy) event(ev event) {
	j := ev.job
	switch ev.kind {
	case changed:
		if r := l.plain[j]; r != nil && j.hidden && j.status.terminal() {
			delete(l.plain, j)
			if j.out.err != nil {
				r.failWith(j.out.err)
			} else {
				r.reply(orEmpty(j.out.result))
			}
		}
	case progress:
		if j.owner == l.s.owner {
			l.s.notify("notifications/progress", l.relate(j, progressParams(j)), l.about(j))
		}
	case logged:
		if l.live && slices.Index(levels, ev.level) >= l.level && (!j.hidden || j.owner == l.s.owner) {
			l.s.notify("notifications/message", l.relate(j, logParams(ev)), l.about(j))
		}
	case withdrawn:
		if a := l.asked[ev.question]; a != nil {
			delete(l.asked, ev.question)
			if a.abandon != nil {
				a.abandon()
			} else {
				l.s.drop(a.out, ev.why)
			}
		}
	case visited:
		if l.visits[ev.elicitID] {
			delete(l.visits, ev.elicitID)
			l.s.notify("notifications/elicitation/complete", enc(map[string]string{"elicitationId": ev.elicitID}), "")
		}
	case retooled:
		if l.live {
			l.s.notify("notifications/tools/list_changed", nil, "")
		}
	}
}

// about is the request whose stream a job's messages belong on.
func (l *legacy) about(j *job) string {
	if r := l.plain[j]; r != nil {
		return string(r.id)
	}
	if r := l.beside[j]; r != nil {
		return string(r.id)
	}
	return ""
}

// relate puts the generation's related-task metadata into params or a result,
// unless the job is no task.
func (l *legacy) relate(j *job, params json.RawMessage) json.RawMessage {
	if j.hidden {
		return params
	}
	return splice(params, "_meta", map[string]any{l.related: map[string]string{"taskId": j.id}})
}

func progressParams(j *job) json.RawMessage {
	p := struct {
		Token    json.RawMessage `json:"progressToken"`
		Progress float64         `json:"progress"`
		Total    float64         `json:"total,omitempty"`
		Message  string          `json:"message,omitempty"`
	}{j.token, j.progress, j.total, j.progressNote}
	return enc(p)
}

func logParams(ev event) json.RawMessage {
	return enc(struct {
		Level  string `json:"level"`
		Logger string `json:"logger"`
		Data   string `json:"data"`
	}{ev.level, ev.job.tool.name, ev.text})
}

// put sends a question to the client, on the stream of about when that is not
// nil. It reports whether the client can be asked this at all.
func (l *legacy) put(j *job, q *question, about *inbound) bool {
	if !l.live || q.claimed != 0 || l.caps.lacks(q.takes()) != "" {
		return false
	}
	q.claimed = l.s.owner
	id := ""
	if about != nil {
		id = string(about.id)
	}
	if q.elicitID != "" {
		l.visits[q.elicitID] = true
	}
	a := &asking{job: j, key: q.key, about: about}
	l.asked[q] = a
	e := l.s.srv.engine
	jobID, key := j.id, q.key
	a.out = l.s.call(q.method, l.relate(j, q.params), id, func(result json.RawMessage, err *rpcError) {
		e.mu.Lock()
		delete(l.asked, q)
		hidden := j.hidden
		e.mu.Unlock()
		if err != nil {
			_ = e.answer(jobID, map[string]json.RawMessage{key: nil})
			return
		}
		if !hidden && !l.isRelated(result, jobID) {
			l.s.notify("notifications/message", enc(map[string]string{"level": "warning", "logger": "protocol",
				"data": "the answer to " + q.method + " lacks the " + l.related + " metadata of its task"}), "")
		}
		var bad *invalidAnswer
		if e2 := e.answer(jobID, map[string]json.RawMessage{key: result}); errors.As(e2, &bad) {
			e.askAgain(jobID, key, bad.why)
		}
	})
	return true
}

// retract takes a question back from this client, so that it can be put anew.
func (l *legacy) retract(q *question, why string) {
	if a := l.asked[q]; a != nil {
		delete(l.asked, q)
		l.s.drop(a.out, why)
	}
	q.claimed = 0
}

func (l *legacy) isRelated(result json.RawMessage, id string) bool {
	var m struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(result, &m)
	var t struct {
		TaskID string `json:"taskId"`
	}
	_ = json.Unmarshal(m.Meta[l.related], &t)
	return t.TaskID == id
}

// takes names the capability that a question needs.
func (q *question) takes() []string {
	switch {
	case q.method == "sampling/createMessage":
		return []string{"sampling"}
	case q.elicitID != "":
		return []string{"url"}
	}
	return []string{"form"}
}

// taskID reads params.taskId; false means that the request was refused.
func taskID(r *inbound) (string, bool) {
	var p struct {
		TaskID *string `json:"taskId"`
	}
	if json.Unmarshal(orEmpty(r.params), &p) != nil || p.TaskID == nil {
		r.fail(codeParams, "%s needs a taskId", r.method)
		return "", false
	}
	return *p.TaskID, true
}

// notFound answers a request about a task that there is not.
func notFound(r *inbound, id string) {
	if r.s.srv.engine.expired[id] {
		r.fail(codeParams, "Failed to retrieve task: Task has expired")
		return
	}
	r.fail(codeParams, "Failed to retrieve task: Task not found")
}

// cursor makes an opaque cursor: it is signed, so that one that was made up or
// changed is refused.
func (s *Server) cursor(seq int) string {
	text := strconv.Itoa(seq)
	return base64.RawURLEncoding.EncodeToString([]byte(text + "." + string(s.sign("cursor", text)[:9])))
}

func (s *Server) readCursor(c string) (seq int, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(c)
	if err != nil {
		return 0, false
	}
	text, mac, found := strings.Cut(string(b), ".")
	seq, err = strconv.Atoi(text)
	return seq, found && err == nil && seq > 0 && hmac.Equal([]byte(mac), s.sign("cursor", text)[:9])
}

func (s *Server) sign(purpose, text string) []byte {
	h := hmac.New(sha256.New, s.secret)
	h.Write([]byte(purpose + "\x00" + text))
	return h.Sum(nil)
}

// list answers tasks/list, newest first, by pages.
func (s *Server) list(r *inbound, show func(j *job) any) {
	var p struct {
		Cursor *string `json:"cursor"`
	}
	below := 0
	if json.Unmarshal(orEmpty(r.params), &p) != nil {
		r.fail(codeParams, "Invalid cursor")
		return
	}
	if p.Cursor != nil {
		var ok bool
		if below, ok = s.readCursor(*p.Cursor); !ok {
			r.fail(codeParams, "Invalid cursor")
			return
		}
	}
	tasks := []any{}
	next := s.engine.page(below, s.opts.PageSize, func(j *job) { tasks = append(tasks, show(j)) })
	out := struct {
		Tasks []any  `json:"tasks"`
		Next  string `json:"nextCursor,omitempty"`
	}{Tasks: tasks}
	if next > 0 {
		out.Next = s.cursor(next)
	}
	r.reply(enc(out))
}

type serverInfo struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

func (s *Server) info() serverInfo {
	return serverInfo{Name: s.opts.Name, Title: "Demo server of mcptasks", Version: "1.0.0"}
}

const instructions = "A server for trying out tasks. Its work is made up; nothing outside of it changes."

// stamp is a time as the wire has it (ISO 8601, UTC, milliseconds).
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// millis is a TTL as the wire has it: null is unlimited.
func millis(d time.Duration) *int64 {
	if d == unlimited {
		return nil
	}
	ms := d.Milliseconds()
	return &ms
}

func orEmpty(b json.RawMessage) json.RawMessage {
	if len(b) == 0 || string(b) == "null" {
		return json.RawMessage("{}")
	}
	return b
}
