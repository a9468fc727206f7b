package demo

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// extension is the wire of 2026-07-28 with io.modelcontextprotocol/tasks: no
// handshake and no state between requests, the server decides what becomes a
// task, questions stand in the task and are answered by tasks/update. Sections
// cited are those of the extension's specification ("tasks") or of the core
// protocol of that date.
//
// The server holds plain calls and subscriptions alone, each as long as its
// request is open. They belong to the engine's mutex.
type extension struct {
	s       *session
	plain   map[*job]*inbound
	listens map[*inbound]*subscription
}

// A subscription is one open subscriptions/listen.
type subscription struct {
	tasks map[string]bool
	tools bool
}

const (
	modernVersion   = "2026-07-28"
	extensionID     = "io.modelcontextprotocol/tasks"
	metaVersion     = "io.modelcontextprotocol/protocolVersion"
	metaCaps        = "io.modelcontextprotocol/clientCapabilities"
	metaLogLevel    = "io.modelcontextprotocol/logLevel"
	metaSubscribed  = "io.modelcontextprotocol/subscriptionId"
	metaServerInfo  = "io.modelcontextprotocol/serverInfo"
	codeHeader      = -32020
	codeCapability  = -32021
	codeVersion     = -32022
	requestStateTTL = 10 * time.Minute
)

var extensionRules = rules{first: working, cooperative: true}

func newExtension(s *session) *extension {
	return &extension{s: s, plain: map[*job]*inbound{}, listens: map[*inbound]*subscription{}}
}

// modernMeta is the metadata that every request carries (basic, "_meta").
type modernMeta struct {
	version  string
	caps     clientCaps
	tasks    bool // the client declared the extension on this request
	logLevel int  // -1: no log messages are wanted
}

// readMeta reads it; an error is what the request is to be refused with.
func readMeta(method string, params json.RawMessage) (modernMeta, *rpcError) {
	var p struct {
		Version string                     `json:"protocolVersion"` // of a legacy initialize
		Meta    map[string]json.RawMessage `json:"_meta"`
	}
	m := modernMeta{logLevel: -1}
	if json.Unmarshal(orEmpty(params), &p) != nil {
		return m, &rpcError{Code: codeParams, Message: "_meta is no object"}
	}
	if json.Unmarshal(p.Meta[metaVersion], &m.version) != nil || m.version == "" {
		if method == "initialize" {
			// basic/versioning: an error to initialize SHOULD name what is
			// supported; it may be all that a legacy client can show.
			return m, unsupportedVersion(p.Version)
		}
		return m, &rpcError{Code: codeParams, Message: "_meta lacks " + metaVersion}
	}
	if m.version != modernVersion {
		return m, unsupportedVersion(m.version)
	}
	raw := p.Meta[metaCaps]
	if !isObject(raw) {
		return m, &rpcError{Code: codeParams, Message: "_meta lacks " + metaCaps}
	}
	var c struct {
		Extensions map[string]json.RawMessage `json:"extensions"`
	}
	if json.Unmarshal(raw, &c) != nil {
		return m, &rpcError{Code: codeParams, Message: metaCaps + " is malformed"}
	}
	m.caps = readLegacyCaps(raw)
	m.tasks = isObject(c.Extensions[extensionID])
	if l := p.Meta[metaLogLevel]; l != nil {
		var name string
		_ = json.Unmarshal(l, &name)
		if m.logLevel = slices.Index(levels, name); m.logLevel < 0 {
			return m, &rpcError{Code: codeParams, Message: "no log level " + string(l)}
		}
	}
	return m, nil
}

func unsupportedVersion(requested string) *rpcError {
	return &rpcError{Code: codeVersion, Message: "Unsupported protocol version; this server speaks " + modernVersion + " only",
		Data: enc(struct {
			Supported []string `json:"supported"`
			Requested string   `json:"requested"`
		}{[]string{modernVersion}, requested})}
}

// missing is -32021 with the capabilities that the request lacks.
func missing(needs ...string) *rpcError {
	r := map[string]any{}
	for _, n := range needs {
		switch n {
		case "tasks":
			r["extensions"] = map[string]any{extensionID: map[string]any{}}
		case "form", "url":
			r["elicitation"] = map[string]any{n: map[string]any{}}
		case "sampling":
			r["sampling"] = map[string]any{}
		}
	}
	return &rpcError{Code: codeCapability, Message: "Missing required client capability", Data: enc(map[string]any{"requiredCapabilities": r})}
}

// complete marks an object as a standard result.
func complete(o json.RawMessage) json.RawMessage { return splice(o, "resultType", "complete") }

func (x *extension) request(r *inbound) {
	meta, bad := readMeta(r.method, r.params)
	if bad != nil {
		r.failWith(bad)
		return
	}
	switch r.method {
	case "server/discover":
		r.reply(complete(enc(struct {
			Versions []string        `json:"supportedVersions"`
			Caps     json.RawMessage `json:"capabilities"`
			Words    string          `json:"instructions"`
			TTL      int             `json:"ttlMs"`
			Scope    string          `json:"cacheScope"`
			Meta     map[string]any  `json:"_meta"`
		}{[]string{modernVersion}, compact(`{"logging":{},"tools":{"listChanged":true},"extensions":{"` + extensionID + `":{}}}`),
			instructions, 3_600_000, "public", map[string]any{metaServerInfo: x.s.srv.info()}})))
	case "tools/list":
		x.listTools(r)
	case "tools/call":
		x.callTool(r, meta)
	case "subscriptions/listen":
		x.listen(r, meta)
	case "tasks/get", "tasks/update", "tasks/cancel":
		// "Protocol Errors": -32021 for a request that does not declare the
		// extension, whatever earlier ones declared.
		if !meta.tasks {
			r.failWith(missing("tasks"))
			return
		}
		id, ok := taskID(r)
		if !ok {
			return
		}
		switch r.method {
		case "tasks/get":
			x.s.srv.engine.with(id, func(j *job) {
				if j == nil {
					notFound(r, id)
					return
				}
				r.reply(complete(enc(showModern(j))))
			})
		case "tasks/update":
			x.update(r, id)
		case "tasks/cancel":
			x.cancel(r, id)
		}
	default:
		r.fail(codeMethod, "Method not found: %s", r.method)
	}
}

// modernTask is a DetailedTask.
type modernTask struct {
	ID       string          `json:"taskId"`
	Status   status          `json:"status"`
	Message  string          `json:"statusMessage,omitempty"`
	Created  string          `json:"createdAt"`
	Updated  string          `json:"lastUpdatedAt"`
	TTL      *int64          `json:"ttlMs"`
	Poll     int64           `json:"pollIntervalMs"`
	Requests json.RawMessage `json:"inputRequests,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Error    *rpcError       `json:"error,omitempty"`
}

func showModern(j *job) modernTask {
	t := modernTask{ID: j.id, Status: j.status, Message: j.message, Created: stamp(j.created), Updated: stamp(j.updated),
		TTL: millis(j.ttl), Poll: j.poll.Milliseconds()}
	switch j.status {
	case inputRequired:
		t.Requests = inputRequests(j.questions)
	case completed:
		t.Result = complete(orEmpty(j.out.result))
	case failed:
		t.Error = j.out.err
	}
	return t
}

// inputRequests are the questions in the order in which they were asked.
func inputRequests(questions []*question) json.RawMessage {
	var b strings.Builder
	b.WriteByte('{')
	for i, q := range questions {
		if i > 0 {
			b.WriteByte(',')
		}
		params := string(q.params)
		if q.elicitID != "" {
			// This revision has no completion notice and so no id for it.
			params = strings.Replace(params, `,"elicitationId":`+string(enc(q.elicitID)), "", 1)
		}
		b.WriteString(string(enc(q.key)) + `:{"method":` + string(enc(q.method)) + `,"params":` + params + `}`)
	}
	b.WriteByte('}')
	return json.RawMessage(b.String())
}

func (x *extension) listTools(r *inbound) {
	var p struct {
		Cursor *string `json:"cursor"`
	}
	if json.Unmarshal(r.params, &p) != nil || p.Cursor != nil {
		r.fail(codeParams, "Invalid cursor")
		return
	}
	tools := []*listedTool{}
	for _, t := range x.s.srv.listed() {
		tools = append(tools, t.listed())
	}
	r.reply(complete(enc(struct {
		Tools []*listedTool `json:"tools"`
		TTL   int           `json:"ttlMs"`
		Scope string        `json:"cacheScope"`
	}{tools, 30_000, "public"})))
}

// callTool: a task where the client declared the extension and the tool takes
// its time, else a plain result. params.task means nothing here.
func (x *extension) callTool(r *inbound, meta modernMeta) {
	call, ok := readCall(r)
	if !ok {
		return
	}
	t := call.tool
	e := x.s.srv.engine
	if why := e.check.violations(t.input, call.Args); why != "" {
		r.reply(complete(result(nil, true, text("Arguments not accepted: "+why))))
		return
	}
	// "Capability Negotiation": what cannot be done without a task is refused
	// to a client that did not declare the extension. Questions in mid-run
	// need one too.
	if !meta.tasks && (t.support == required || len(t.needs) > 0 && t.early == nil) {
		r.failWith(missing("tasks"))
		return
	}
	if lacks := meta.caps.lacks(t.needs); lacks != "" {
		r.failWith(missing(lacks))
		return
	}
	if t.early != nil {
		if !x.answered(r, call) {
			return
		}
	}
	st := call.job(x.s, meta.caps, false)
	if meta.tasks && t.support != forbidden {
		st.token = nil // "Task Status Notifications": no progress for tasks
		st.begun = func(j *job) { r.reply(splice(enc(showModern(j)), "resultType", "task")) }
		if err := e.begin(st); err != nil {
			r.fail(codeInternal, "%v", err)
		}
		return
	}
	st.hidden = true
	st.begun = func(j *job) {
		j.logLevel = meta.logLevel
		x.plain[j] = r
	}
	r.whenGivenUp(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		for j, have := range maps.Clone(x.plain) {
			if have == r {
				delete(x.plain, j)
				e.end(j, outcome{status: cancelled})
			}
		}
	})
	if err := e.begin(st); err != nil {
		r.fail(codeInternal, "%v", err)
	}
}

// answered sees to it that a tool's question was answered before anything
// begins (basic/patterns/mrtr). All that it knows of the first request is in
// the signed requestState.
func (x *extension) answered(r *inbound, call toolCall) bool {
	var p struct {
		State     *string                    `json:"requestState"`
		Responses map[string]json.RawMessage `json:"inputResponses"`
	}
	if json.Unmarshal(r.params, &p) != nil {
		r.fail(codeParams, "requestState is a string and inputResponses an object")
		return false
	}
	e := x.s.srv.engine
	var args map[string]any
	_ = json.Unmarshal(call.Args, &args)
	key, q := call.tool.early(args)
	e.mu.Lock()
	now := e.time()
	e.mu.Unlock()
	about := call.tool.name + " " + string(call.Args)
	if p.State != nil && !x.s.srv.knowsState(*p.State, about, now) {
		r.fail(codeParams, "requestState is not one of this request's, or too old")
		return false
	}
	a := p.Responses[key]
	if p.State == nil || a == nil {
		q.key = key
		r.reply(splice(enc(struct {
			Requests json.RawMessage `json:"inputRequests"`
			State    string          `json:"requestState"`
		}{inputRequests([]*question{q}), x.s.srv.state(about, now)}), "resultType", "input_required"))
		return false
	}
	if why := e.check.answer(q, a); why != "" {
		r.fail(codeParams, "inputResponses.%s: %s", key, why)
		return false
	}
	if actionOf(a) != "accept" {
		r.reply(complete(result(nil, true, text("Nothing was done: no "+key+" was given."))))
		return false
	}
	return true
}

// state makes a requestState for one request, good for ten minutes.
func (s *Server) state(about string, now time.Time) string {
	due := strconv.FormatInt(now.Add(requestStateTTL).Unix(), 10)
	return base64.RawURLEncoding.EncodeToString([]byte(due + "." + string(s.sign("state", due+" "+about))))
}

func (s *Server) knowsState(state, about string, now time.Time) bool {
	b, err := base64.RawURLEncoding.DecodeString(state)
	if err != nil {
		return false
	}
	due, mac, found := strings.Cut(string(b), ".")
	n, err := strconv.ParseInt(due, 10, 64)
	return found && err == nil && now.Unix() <= n && hmac.Equal([]byte(mac), s.sign("state", due+" "+about))
}

// update takes answers; keys that are not outstanding are ignored ("Task
// Update Requests").
func (x *extension) update(r *inbound, id string) {
	var p struct {
		Responses map[string]json.RawMessage `json:"inputResponses"`
	}
	if json.Unmarshal(r.params, &p) != nil || p.Responses == nil {
		r.fail(codeParams, "tasks/update needs inputResponses, an object")
		return
	}
	e := x.s.srv.engine
	known := false
	e.with(id, func(j *job) {
		if known = j != nil; !known {
			notFound(r, id)
		}
	})
	if !known {
		return
	}
	for key, a := range p.Responses {
		if !isObject(a) {
			r.fail(codeParams, "inputResponses.%s is no object", key)
			return
		}
	}
	var bad *invalidAnswer
	switch err := e.answer(id, p.Responses); {
	case errors.As(err, &bad):
		r.fail(codeParams, "inputResponses.%s: %s", bad.key, bad.why)
	case errors.Is(err, errNoTask):
		r.fail(codeParams, "Failed to update task: Task not found")
	default:
		r.reply(complete(json.RawMessage("{}")))
	}
}

// cancel acknowledges; what becomes of the task is the work's to decide ("Task
// Cancellation").
func (x *extension) cancel(r *inbound, id string) {
	e := x.s.srv.engine
	e.with(id, func(j *job) {
		if j == nil {
			notFound(r, id)
			return
		}
		r.reply(complete(json.RawMessage("{}")))
		if !j.status.terminal() {
			e.cancelLocked(j)
		}
	})
}

// listen opens a subscription (basic/patterns/subscriptions). The
// acknowledgement is the first message of it.
func (x *extension) listen(r *inbound, meta modernMeta) {
	var p struct {
		Wants *struct {
			Tools     bool      `json:"toolsListChanged"`
			Prompts   bool      `json:"promptsListChanged"`
			Resources bool      `json:"resourcesListChanged"`
			URIs      []string  `json:"resourceSubscriptions"`
			Tasks     *[]string `json:"taskIds"`
		} `json:"notifications"`
	}
	if json.Unmarshal(r.params, &p) != nil || p.Wants == nil {
		r.fail(codeParams, "subscriptions/listen needs notifications, a filter")
		return
	}
	if p.Wants.Tasks != nil && !meta.tasks {
		r.failWith(missing("tasks"))
		return
	}
	e := x.s.srv.engine
	r.whenGivenUp(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(x.listens, r)
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	sub := &subscription{tasks: map[string]bool{}, tools: p.Wants.Tools}
	ack := struct {
		Tools bool      `json:"toolsListChanged,omitempty"`
		Tasks *[]string `json:"taskIds,omitempty"`
	}{Tools: p.Wants.Tools}
	if p.Wants.Tasks != nil {
		agreed := []string{}
		for _, id := range *p.Wants.Tasks {
			if j := e.jobs[id]; j != nil && !j.hidden && !sub.tasks[id] {
				sub.tasks[id] = true
				agreed = append(agreed, id)
			}
		}
		ack.Tasks = &agreed
	}
	x.push(r, "notifications/subscriptions/acknowledged", enc(map[string]any{"notifications": ack}))
	if r.open() {
		x.listens[r] = sub
	}
}

// push sends a notification of a subscription.
func (x *extension) push(r *inbound, method string, params json.RawMessage) {
	x.s.notify(method, splice(params, "_meta", map[string]any{metaSubscribed: r.id}), string(r.id))
}

// goodbye ends the subscriptions gracefully ("Graceful Closure").
func (x *extension) goodbye() {
	e := x.s.srv.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	for r := range x.listens {
		r.reply(complete(enc(map[string]any{"_meta": map[string]any{metaSubscribed: r.id}})))
	}
	clear(x.listens)
}

func (x *extension) notification(method string, params json.RawMessage) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	if method == "notifications/cancelled" && json.Unmarshal(params, &p) == nil {
		x.s.giveUp(p.ID)
	}
}

func (x *extension) event(ev event) {
	j := ev.job
	switch ev.kind {
	case changed:
		if r := x.plain[j]; r != nil && j.status.terminal() {
			delete(x.plain, j)
			if j.out.err != nil {
				r.failWith(j.out.err)
			} else {
				r.reply(complete(orEmpty(j.out.result)))
			}
		}
		if j.hidden {
			return
		}
		for _, r := range x.subscribers() {
			if x.listens[r].tasks[j.id] {
				x.push(r, "notifications/tasks", enc(showModern(j)))
			}
		}
	case progress:
		if r := x.plain[j]; r != nil {
			x.s.notify("notifications/progress", progressParams(j), string(r.id))
		}
	case logged:
		if r := x.plain[j]; r != nil && j.logLevel >= 0 && slices.Index(levels, ev.level) >= j.logLevel {
			x.s.notify("notifications/message", logParams(ev), string(r.id))
		}
	case retooled:
		for _, r := range x.subscribers() {
			if x.listens[r].tools {
				x.push(r, "notifications/tools/list_changed", json.RawMessage("{}"))
			}
		}
	}
}

// subscribers are the open subscriptions in the order of their ids, so that a
// run is the same each time.
func (x *extension) subscribers() []*inbound {
	rs := slices.Collect(maps.Keys(x.listens))
	slices.SortFunc(rs, func(a, b *inbound) int { return strings.Compare(string(a.id), string(b.id)) })
	return rs
}
