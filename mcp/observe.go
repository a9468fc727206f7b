package mcp

import (
	"encoding/json"
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
