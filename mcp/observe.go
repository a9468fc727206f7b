package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/taskmodel"
)

// An Observer reads along in conversations between another client and a server,
// in all three generations, and says what they are about: calls that become
// tasks, states, progress, questions and answers, results, cancels. It sends
// nothing. observe_send.go makes the few requests by which its owner may act.
//
// It is not safe for concurrent use; messages are given to it in the order in
// which they passed.
type Observer struct {
	server string
	tag    string
	convs  map[string]*conversation
	tasks  map[string]*observedTask
}

// An Overheard is one message that passed.
type Overheard struct {
	Conv     string     // whose conversation: a client's session
	Exchange string     // HTTP of the modern era: ids are unique in one exchange only
	On       jsonrpc.ID // the request on whose stream a message of the server came
	ToServer bool
	Own      bool // not the client's but the owner's; answers to that are known by their id
	At       time.Time
	Message  jsonrpc.Message
}

// HeardKind is what a message was about.
type HeardKind string

const (
	HeardClient    HeardKind = "client"    // who the client is and what was negotiated: see Info
	HeardTask      HeardKind = "task"      // a server's statement; with Call when that call made the task
	HeardProgress  HeardKind = "progress"  // of Task
	HeardQuestion  HeardKind = "question"  // the server asks; its ID is stable
	HeardAnswer    HeardKind = "answer"    // the client answered Question.ID with Action
	HeardWithdrawn HeardKind = "withdrawn" // the server does not ask Question.ID any more
	HeardOutcome   HeardKind = "outcome"   // what Task came to
	HeardCancel    HeardKind = "cancel"    // the client asked for Task's cancellation
	HeardRefused   HeardKind = "refused"   // the server refused to cancel Task
	HeardGone      HeardKind = "gone"      // the server does not know Task
	HeardDeleted   HeardKind = "deleted"   // the client had Task deleted
	HeardWants     HeardKind = "wants"     // the modern era: a call wants input before it goes on
)

// A Heard is one thing that a message said. Remote text is raw.
type Heard struct {
	Kind        HeardKind
	Conv        string
	Own         bool
	Generation  taskmodel.Generation
	Client      string // the client's name, "" when it has not said
	Task        string
	Observation taskmodel.Observation
	Call        *HeardCall
	Progress    taskmodel.Progress
	Question    taskmodel.Question
	Action      taskmodel.Action
	Outcome     taskmodel.Outcome
	Words       string
	Info        Info
}

// A HeardCall is the tool call that a task came of.
type HeardCall struct {
	Tool string
	Args json.RawMessage
	TTL  taskmodel.TTL
}

// A conversation is one client's session as far as it was overheard.
type conversation struct {
	client string
	caps   json.RawMessage // the client's
	meta   json.RawMessage // the modern era: of the last request
	info   Info
	calls  map[string]*overheardCall // unanswered, by exchange and id
	asks   map[string]taskmodel.Question
	tokens map[string]string         // progress token to task
	drafts map[string]*overheardCall // the draft's calls, by task id
	tag    string
}

type overheardCall struct {
	id      jsonrpc.ID
	method  string
	task    string
	call    HeardCall
	token   string
	at      time.Time
	own     bool
	modern  bool
	answers map[string]taskmodel.Action // tasks/update
	made    bool                        // the draft: the server said that there is a task
}

type observedTask struct {
	gen   taskmodel.Generation
	conv  string
	asked map[string]bool // the extension's keys: true while they are asked
}

// maxOverheard bounds what is remembered of calls that are never answered.
const maxOverheard = 10_000

// NewObserver makes one for one server; server is the name that keys and
// questions get. tag begins the ids of questions that came as requests or with
// calls, whose own ids mean nothing elsewhere.
func NewObserver(server, tag string) *Observer {
	return &Observer{server: server, tag: tag, convs: map[string]*conversation{}, tasks: map[string]*observedTask{}}
}

func (o *Observer) conv(name string) *conversation {
	c := o.convs[name]
	if c == nil {
		c = &conversation{
			calls: map[string]*overheardCall{}, asks: map[string]taskmodel.Question{},
			tokens: map[string]string{}, drafts: map[string]*overheardCall{}, tag: o.tag,
		}
		if name != "" {
			c.tag += "/" + connectionTag(name)
		}
		o.convs[name] = c
	}
	return c
}

// Forget drops what is known of a conversation that has ended. Its tasks stay
// known.
func (o *Observer) Forget(conv string) { delete(o.convs, conv) }

// Client tells who the client of a conversation is, and whether it has declared
// that it can be asked (elicitation).
func (o *Observer) Client(conv string) (name string, answers, known bool) {
	c := o.convs[conv]
	if c == nil || c.caps == nil {
		return "", false, false
	}
	return c.client, isObject(member(c.caps, "elicitation")), true
}

// Read takes one message and gives what it says, in order.
func (o *Observer) Read(m Overheard) []Heard {
	c := o.conv(m.Conv)
	var out []Heard
	switch k := m.Message.Kind; {
	case m.ToServer && k == jsonrpc.KindRequest:
		out = o.clientAsks(c, m)
	case m.ToServer && k == jsonrpc.KindNotification:
		out = o.clientTells(c, m)
	case m.ToServer && k == jsonrpc.KindResponse:
		out = o.clientAnswers(c, m)
	case k == jsonrpc.KindResponse:
		out = o.serverAnswers(c, m)
	case k == jsonrpc.KindNotification:
		out = o.serverTells(c, m)
	case k == jsonrpc.KindRequest:
		out = o.serverAsks(c, m)
	}
	for i := range out {
		h := &out[i]
		h.Conv, h.Client = m.Conv, c.client
		if h.Task != "" {
			t := o.tasks[h.Task]
			if t == nil {
				t = &observedTask{}
				o.tasks[h.Task] = t
			}
			t.conv = m.Conv
			if h.Generation != "" {
				t.gen = h.Generation
			}
			h.Generation = t.gen
		}
	}
	return out
}

func (c *conversation) modern(params json.RawMessage) bool {
	meta := member(params, "_meta")
	version := stringAt(meta, metaVersion)
	if version == "" {
		return c.info.Era == eraModern
	}
	c.meta, c.caps = meta, member(meta, metaCapabilities)
	if n := stringAt(meta, metaClientInfo, "name"); n != "" {
		c.client = n
	}
	c.info.Era, c.info.ProtocolVersion, c.info.Generation = eraModern, version, taskmodel.GenExtension
	return true
}

// gen is the generation in which a call was made.
func (c *conversation) gen(call *overheardCall) taskmodel.Generation {
	switch {
	case call != nil && call.modern:
		return taskmodel.GenExtension
	case c.info.Generation != "" && c.info.Generation != taskmodel.GenNone:
		return c.info.Generation
	case call != nil && c.drafts[call.task] != nil:
		return taskmodel.GenDraft
	}
	return taskmodel.GenCore
}

func (o *Observer) clientAsks(c *conversation, m Overheard) []Heard {
	p := m.Message.Params
	call := &overheardCall{id: m.Message.ID, method: m.Message.Method, at: m.At, own: m.Own}
	if m.Own {
		call.modern = c.info.Era == eraModern
	} else {
		call.modern = c.modern(p)
	}
	var out []Heard
	switch call.method {
	case "initialize":
		c.client, c.caps = stringAt(p, "clientInfo", "name"), member(p, "capabilities")
		if c.caps == nil {
			c.caps = json.RawMessage("{}")
		}
		c.info = Info{Era: eraLegacy}
	case "server/discover", "tasks/list":
	case "tools/call":
		call.call = HeardCall{Tool: stringAt(p, "name"), Args: member(p, "arguments")}
		call.token = tokenText(memberAt(p, "_meta", "progressToken"))
		if task := member(p, "task"); isObject(task) {
			call.call.TTL = readTTL("ttl", member(task, "ttl"), &[]string{})
		}
		if task := memberAt(p, "_meta", metaDraftTask); isObject(task) {
			call.task = stringAt(task, "taskId")
			call.call.TTL = readTTL("keepAlive", member(task, "keepAlive"), &[]string{})
			if call.task != "" {
				c.drafts[call.task] = call
			}
		}
	case "tasks/get", "tasks/result", "tasks/cancel", "tasks/delete", "tasks/update":
		call.task = stringAt(p, "taskId")
		if call.method == "tasks/cancel" && !m.Own {
			out = append(out, Heard{Kind: HeardCancel, Task: call.task, Generation: o.known(call.task, c.gen(call))})
		}
		if call.method == "tasks/update" {
			call.answers = map[string]taskmodel.Action{}
			members(member(p, "inputResponses"), func(key string, v json.RawMessage) bool {
				call.answers[key] = actionOf(v)
				return true
			})
		}
	default:
		return nil
	}
	if len(c.calls) >= maxOverheard {
		clear(c.calls) // a client that is never answered; what is lost is who asked
	}
	c.calls[m.Exchange+"\x00"+string(call.id)] = call
	return out
}

// known is the generation that a task is known in, else the one given.
func (o *Observer) known(task string, g taskmodel.Generation) taskmodel.Generation {
	if t := o.tasks[task]; t != nil && t.gen != "" {
		return t.gen
	}
	return g
}

// actionOf reads how a question was answered.
func actionOf(result json.RawMessage) taskmodel.Action {
	switch a := taskmodel.Action(stringAt(result, "action")); a {
	case taskmodel.Decline, taskmodel.Cancel:
		return a
	}
	return taskmodel.Accept
}

func tokenText(v json.RawMessage) string {
	if isString(v) {
		return text(v)
	}
	return string(v)
}

func (o *Observer) clientTells(c *conversation, m Overheard) []Heard {
	if m.Message.Method != "notifications/cancelled" || m.Own {
		return nil
	}
	id := jsonrpc.ID(member(m.Message.Params, "requestId"))
	for task, call := range c.drafts {
		if call.id == id && call.made {
			// SEP-1686 4.8: the draft cancels by the call's request id.
			return []Heard{{Kind: HeardCancel, Task: task, Generation: taskmodel.GenDraft}}
		}
	}
	return nil
}

func (o *Observer) clientAnswers(c *conversation, m Overheard) []Heard {
	q, ok := c.asks[string(m.Message.ID)]
	if !ok {
		return nil
	}
	delete(c.asks, string(m.Message.ID))
	h := Heard{Kind: HeardAnswer, Own: m.Own, Task: q.Task.ID, Question: q, Action: actionOf(m.Message.Result)}
	if e := m.Message.Error; e != nil {
		h.Action, h.Words = taskmodel.Decline, e.Message
	}
	return []Heard{h}
}

// serverAsks reads a request of the server: a question for the client's person.
func (o *Observer) serverAsks(c *conversation, m Overheard) []Heard {
	method := m.Message.Method
	if method != methodElicit && method != methodSampling {
		return nil
	}
	rel := relatedTask(m.Message.Params)
	task, tool := rel.task, ""
	if on := c.calls[m.Exchange+"\x00"+string(m.On)]; on != nil && m.On != "" {
		tool = on.call.Tool
		if task == "" && on.method == "tasks/result" {
			task = on.task
		}
	}
	var key taskmodel.Key
	if task != "" {
		key = taskmodel.Key{Server: o.server, ID: task, Role: taskmodel.Requestor}
	}
	q := askedQuestion(o.server, c.tag+":"+m.Message.ID.String(), plainID(m.Message.ID), method, m.Message.Params, key, m.At)
	q.Tool = tool
	if len(c.asks) >= maxOverheard {
		clear(c.asks)
	}
	c.asks[string(m.Message.ID)] = q
	return []Heard{{Kind: HeardQuestion, Task: task, Question: q}}
}

// serverTells reads a notification.
func (o *Observer) serverTells(c *conversation, m Overheard) []Heard {
	p := m.Message.Params
	switch m.Message.Method {
	case notifyCore, notifyExtension, notifyDraftCreated:
		return o.pushed(c, m)
	case "notifications/progress":
		pr := taskmodel.Progress{At: m.At, Message: stringAt(p, "message")}
		var ok bool
		if pr.Value, ok = number(member(p, "progress")); !ok {
			return nil
		}
		pr.Total, pr.HasTotal = number(member(p, "total"))
		task := c.tokens[tokenText(member(p, "progressToken"))]
		if task == "" {
			task = relatedTask(p).task
		}
		if task == "" {
			return nil
		}
		return []Heard{{Kind: HeardProgress, Task: task, Progress: pr}}
	case "notifications/cancelled":
		id := string(member(p, "requestId"))
		if q, ok := c.asks[id]; ok {
			delete(c.asks, id)
			return []Heard{{Kind: HeardWithdrawn, Task: q.Task.ID, Question: q, Words: "the server withdrew it"}}
		}
	}
	return nil
}

func (o *Observer) pushed(c *conversation, m Overheard) []Heard {
	raw := m.Message.Params
	if t := member(raw, "task"); isObject(t) && member(raw, "taskId") == nil {
		raw = t
	}
	id := stringAt(raw, "taskId")
	if id == "" {
		id = relatedTask(m.Message.Params).task
	}
	if id == "" {
		return nil
	}
	gen := o.known(id, c.gen(nil))
	call := c.drafts[id]
	if m.Message.Method == notifyDraftCreated || call != nil {
		gen = taskmodel.GenDraft
	}
	h := Heard{Kind: HeardTask, Task: id, Generation: gen}
	if m.Message.Method == notifyDraftCreated && call != nil && !call.made {
		call.made = true
		h.Call = &call.call
		if call.token != "" {
			c.tokens[call.token] = id
		}
	}
	h.Observation = taskmodel.Observation{Snapshot: unheard(id), Source: taskmodel.FromPush, AskedAt: m.At, HeardAt: m.At}
	if h.Call != nil {
		h.Observation.Source, h.Observation.AskedAt = taskmodel.FromCreate, call.at
	}
	if stringAt(raw, "status") != "" {
		snap, err := readIn(gen, raw, id)
		if err != nil {
			return nil
		}
		h.Observation.Snapshot = snap
	} else if h.Call == nil {
		return nil
	}
	return append([]Heard{h}, o.questions(h)...)
}

// readIn reads a task in the words of its generation.
func readIn(gen taskmodel.Generation, raw json.RawMessage, id string) (taskmodel.Snapshot, error) {
	switch gen {
	case taskmodel.GenExtension:
		snap, err := readDetailed(raw)
		if errors.Is(err, errNoTaskID) && id != "" {
			snap.ID, err = id, nil
		}
		return snap, err
	case taskmodel.GenDraft:
		return readDraft(raw, id)
	}
	return readTaskAs(raw, id, coreFields)
}

// questions compares what a state of the extension asks with what it asked
// before (tasks.md, "Task Update Requests").
func (o *Observer) questions(h Heard) []Heard {
	if h.Generation != taskmodel.GenExtension || h.Kind != HeardTask {
		return nil
	}
	snap := h.Observation.Snapshot
	t := o.tasks[snap.ID]
	if t == nil {
		t = &observedTask{gen: h.Generation}
		o.tasks[snap.ID] = t
	}
	var out []Heard
	now := map[string]bool{}
	requests := member(snap.Raw, "inputRequests")
	if !isObject(requests) || snap.Status.Terminal(h.Generation) {
		requests = nil
	}
	key := taskmodel.Key{Server: o.server, ID: snap.ID, Role: taskmodel.Requestor}
	members(requests, func(k string, v json.RawMessage) bool {
		now[k] = true
		if t.asked[k] {
			return true
		}
		q := askedQuestion(o.server, taskQuestionID(snap.ID, k), k, stringAt(v, "method"), member(v, "params"), key, h.Observation.HeardAt)
		if q.Kind != taskmodel.AskRoots {
			out = append(out, Heard{Kind: HeardQuestion, Task: snap.ID, Generation: h.Generation, Question: q})
		}
		return true
	})
	for k, open := range t.asked {
		if open && !now[k] {
			out = append(out, Heard{Kind: HeardWithdrawn, Task: snap.ID, Generation: h.Generation, Words: "the server does not ask this any more",
				Question: taskmodel.Question{ID: taskmodel.QuestionID{Server: o.server, ID: taskQuestionID(snap.ID, k)}, Task: key, Key: k}})
		}
	}
	t.asked = now
	return out
}

// serverAnswers reads the answer to a request.
func (o *Observer) serverAnswers(c *conversation, m Overheard) []Heard {
	at := m.Exchange + "\x00" + string(m.Message.ID)
	call := c.calls[at]
	if call == nil {
		return nil
	}
	delete(c.calls, at)
	var out []Heard
	if e := m.Message.Error; e != nil {
		out = o.refused(c, call, &taskmodel.RPCError{Code: e.Code, Message: e.Message, Data: e.Data}, m.At)
	} else {
		out = o.answered(c, call, m)
	}
	for i := range out {
		out[i].Own = call.own
	}
	return out
}

func (o *Observer) refused(c *conversation, call *overheardCall, e *taskmodel.RPCError, at time.Time) []Heard {
	gen := o.known(call.task, c.gen(call))
	h := Heard{Task: call.task, Generation: gen, Words: e.Message}
	switch {
	case call.method == "tasks/get" && e.Code == codeInvalidParams,
		call.method != "tools/call" && e.Code == codeInvalidParams && soundsUnknown(e.Message) && !soundsTerminal(e.Message):
		h.Kind = HeardGone
	case call.method == "tasks/cancel":
		h.Kind = HeardRefused
	case call.method == "tasks/result" && e.Code != codeMethodNotFound && gen == taskmodel.GenCore,
		call.method == "tools/call" && call.made && gen == taskmodel.GenDraft:
		// The server gives exactly what the request would have given.
		h.Kind, h.Outcome = HeardOutcome, taskmodel.Outcome{Err: e, FetchedAt: at}
	default:
		return nil
	}
	return []Heard{h}
}

func (o *Observer) answered(c *conversation, call *overheardCall, m Overheard) []Heard {
	b := m.Message.Result
	gen := o.known(call.task, c.gen(call))
	statement := func(src taskmodel.Source, raw json.RawMessage, id string) []Heard {
		snap, err := readIn(gen, raw, id)
		if err != nil {
			return nil
		}
		if src == taskmodel.FromGet && id != "" {
			snap.ID = id
		}
		h := Heard{Kind: HeardTask, Task: snap.ID, Generation: gen,
			Observation: taskmodel.Observation{Snapshot: snap, Source: src, AskedAt: call.at, HeardAt: m.At}}
		return append([]Heard{h}, o.questions(h)...)
	}
	switch call.method {
	case "initialize", "server/discover":
		return []Heard{o.introduced(c, call, b)}
	case "tools/call":
		return o.called(c, call, b, m.At)
	case "tasks/get":
		return statement(taskmodel.FromGet, b, call.task)
	case "tasks/list":
		var out []Heard
		elements(member(b, "tasks"), func(v json.RawMessage) bool {
			out = append(out, statement(taskmodel.FromList, v, stringAt(v, "taskId"))...)
			return true
		})
		return out
	case "tasks/result":
		return []Heard{{Kind: HeardOutcome, Task: call.task, Generation: gen, Outcome: taskmodel.Outcome{Result: b, Note: outcome(b).Note, FetchedAt: m.At}}}
	case "tasks/cancel":
		if gen == taskmodel.GenExtension || stringAt(b, "status") == "" && stringAt(b, "task", "status") == "" {
			return nil
		}
		return statement(taskmodel.FromCancel, b, call.task)
	case "tasks/delete":
		return []Heard{{Kind: HeardDeleted, Task: call.task, Generation: gen}}
	case "tasks/update":
		var out []Heard
		for key, a := range call.answers {
			k := taskmodel.Key{Server: o.server, ID: call.task, Role: taskmodel.Requestor}
			out = append(out, Heard{Kind: HeardAnswer, Task: call.task, Generation: gen, Action: a,
				Question: taskmodel.Question{ID: taskmodel.QuestionID{Server: o.server, ID: taskQuestionID(call.task, key)}, Task: k, Key: key}})
		}
		return out
	}
	return nil
}

// introduced reads what the handshake found.
func (o *Observer) introduced(c *conversation, call *overheardCall, b json.RawMessage) Heard {
	i := &c.info
	if call.method == "initialize" {
		i.Era, i.ProtocolVersion = eraLegacy, stringAt(b, "protocolVersion")
		i.ServerName, i.ServerVersion = stringAt(b, "serverInfo", "name"), stringAt(b, "serverInfo", "version")
		i.Generation = taskmodel.GenDraft // until it shows that it has no tasks at all
		if i.ProtocolVersion == versionCore {
			i.Generation = taskmodel.GenNone
			if isObject(memberAt(b, "capabilities", "tasks")) {
				i.Generation = taskmodel.GenCore
			}
		}
	} else {
		info := memberAt(b, "_meta", metaServerInfo)
		if info == nil {
			info = member(b, "serverInfo")
		}
		i.ServerName, i.ServerVersion = stringAt(info, "name"), stringAt(info, "version")
	}
	i.Capabilities = member(b, "capabilities")
	switch i.Generation {
	case taskmodel.GenDraft:
		i.Can = draftCan(i.Capabilities)
	case taskmodel.GenExtension:
		i.Can = taskmodel.Can{Cancel: true}
	default:
		i.Can = coreCan(*i, "")
	}
	return Heard{Kind: HeardClient, Generation: i.Generation, Info: *i}
}

// called reads what became of a tool call.
func (o *Observer) called(c *conversation, call *overheardCall, b json.RawMessage, at time.Time) []Heard {
	gen := c.gen(call)
	if call.task != "" {
		// The draft's own answer comes when the task has ended.
		if !call.made {
			return nil
		}
		return []Heard{{Kind: HeardOutcome, Task: call.task, Generation: taskmodel.GenDraft, Outcome: taskmodel.Outcome{Result: b, FetchedAt: at}}}
	}
	var snap taskmodel.Snapshot
	if call.modern {
		raw := b
		switch kind := stringAt(b, "resultType"); {
		case kind == "input_required":
			return []Heard{{Kind: HeardWants, Generation: gen, Call: &call.call}}
		case isObject(member(b, "task")) && member(b, "taskId") == nil:
			raw = member(b, "task")
		case kind != "task" && (member(b, "taskId") == nil || member(b, "content") != nil):
			return nil
		}
		var err error
		if snap, err = readDetailed(raw); err != nil {
			return nil
		}
	} else {
		st := readStarted(b, false)
		if st.TaskID == "" {
			return nil
		}
		gen, snap = taskmodel.GenCore, st.Snapshot
	}
	if call.token != "" {
		if len(c.tokens) >= maxOverheard {
			clear(c.tokens)
		}
		c.tokens[call.token] = snap.ID
	}
	h := Heard{Kind: HeardTask, Task: snap.ID, Generation: gen, Call: &call.call,
		Observation: taskmodel.Observation{Snapshot: snap, Source: taskmodel.FromCreate, AskedAt: call.at, HeardAt: at}}
	return append([]Heard{h}, o.questions(h)...)
}

// errNotHere is for acts that a conversation does not allow.
func (o *Observer) errNotHere(task, why string) error {
	return fmt.Errorf("%s/%s: %s", o.server, task, why)
}
