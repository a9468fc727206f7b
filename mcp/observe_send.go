package mcp

import (
	"encoding/json"
	"time"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/taskmodel"
)

// Act is something that a reader along may ask of the server in the client's
// session.
type Act string

const (
	ActGet    Act = "get"    // tasks/get
	ActResult Act = "result" // tasks/result, where the generation has it
	ActCancel Act = "cancel" // tasks/cancel; in the draft the notification that takes the call back
)

// Request makes the message by which act is asked of a task's server, with the
// id given, in the words of the task's generation and, in the modern era, with
// the metadata that its client sends. conv is whose conversation it is to go
// into.
func (o *Observer) Request(id jsonrpc.ID, task string, act Act) (m jsonrpc.Outgoing, conv string, err error) {
	t := o.tasks[task]
	if t == nil {
		return m, "", o.errNotHere(task, "nothing was heard of this task in a session that lasts")
	}
	c := o.conv(t.conv)
	m = jsonrpc.Outgoing{Kind: jsonrpc.KindRequest, ID: id, Method: "tasks/" + string(act), Name: task}
	var params map[string]any
	switch t.gen {
	case taskmodel.GenDraft:
		if act == ActCancel {
			call := c.drafts[task]
			if call == nil {
				return m, "", o.errNotHere(task, "this draft of tasks cancels by the id of the call that started the task, and that was not heard")
			}
			m.Kind, m.ID, m.Method = jsonrpc.KindNotification, "", "notifications/cancelled"
			params = map[string]any{"requestId": call.id, "reason": "cancelled by the user", "_meta": relatedMeta(task)}
			break
		}
		params = draftParams(task)
	case taskmodel.GenExtension:
		if act == ActResult {
			m.Method = "tasks/get" // results come with the state
		}
		params = c.modernParams(&m, map[string]any{"taskId": task})
	default:
		params = map[string]any{"taskId": task}
	}
	m.Bytes, err = encode(m, params)
	return m, t.conv, err
}

// Update makes the message that answers a task's question in the extension.
func (o *Observer) Update(id jsonrpc.ID, q taskmodel.Question, a taskmodel.Answer) (m jsonrpc.Outgoing, conv string, err error) {
	task := q.Task.ID
	t := o.tasks[task]
	if t == nil || t.gen != taskmodel.GenExtension {
		return m, "", o.errNotHere(task, "this task takes no answers by tasks/update")
	}
	result, rejected, err := answerResult(q, a, nil)
	switch {
	case err != nil:
		return m, "", o.errNotHere(task, err.Error())
	case rejected != nil:
		return m, "", o.errNotHere(task, "2026-07-28 gives no way to reject a sampling that a task asks for")
	}
	c := o.conv(t.conv)
	m = jsonrpc.Outgoing{Kind: jsonrpc.KindRequest, ID: id, Method: "tasks/update", Name: task}
	params := c.modernParams(&m, map[string]any{"taskId": task, "inputResponses": map[string]any{q.Key: result}})
	m.Bytes, err = encode(m, params)
	return m, t.conv, err
}

// Reply makes the answer to a question that came as a request of the server
// with the id given.
func (o *Observer) Reply(request jsonrpc.ID, q taskmodel.Question, a taskmodel.Answer) (jsonrpc.Outgoing, error) {
	meta := relatedTask(q.Params).meta()
	result, rejected, err := answerResult(q, a, meta)
	if err != nil {
		return jsonrpc.Outgoing{}, err
	}
	body := map[string]any{"jsonrpc": "2.0", "id": request, "result": result}
	if rejected != nil {
		delete(body, "result")
		body["error"] = rejected
	}
	b, err := json.Marshal(body)
	return jsonrpc.Outgoing{Kind: jsonrpc.KindResponse, ID: request, InReplyTo: request, Bytes: b}, err
}

// Wants reads an InputRequiredResult of a call (the modern era): its questions,
// which belong to no task, and the state to come back with. call makes their
// ids its own. ok is false when the result is none.
func (o *Observer) Wants(call string, result json.RawMessage, at time.Time) (questions []taskmodel.Question, state json.RawMessage, ok bool) {
	if stringAt(result, "resultType") != "input_required" {
		return nil, nil, false
	}
	members(member(result, "inputRequests"), func(key string, v json.RawMessage) bool {
		questions = append(questions, askedQuestion(o.server, "call:"+o.tag+":"+call+"/"+key, key, stringAt(v, "method"), member(v, "params"), taskmodel.Key{}, at))
		return true
	})
	return questions, member(result, "requestState"), true
}

// Repeat makes the call anew that a server wants input for: message as the
// client sent it, with the answers and the state added and under another id.
func Repeat(message []byte, id jsonrpc.ID, answers map[string]any, state json.RawMessage) (json.RawMessage, error) {
	params, err := withMembers(member(message, "params"), repeatWith(answers, state))
	if err != nil {
		return nil, err
	}
	return withMembers(message, map[string]any{"params": params, "id": id})
}

// CancelledID is the id of the request that a notifications/cancelled takes back.
func CancelledID(params json.RawMessage) jsonrpc.ID { return jsonrpc.ID(member(params, "requestId")) }

// AnswerResult is what an answer to a call's question becomes in its
// inputResponses.
func AnswerResult(q taskmodel.Question, a taskmodel.Answer) (any, error) {
	result, rejected, err := answerResult(q, a, nil)
	if rejected != nil {
		return nil, rejected
	}
	return result, err
}

func withMembers(object json.RawMessage, add map[string]any) (json.RawMessage, error) {
	m := map[string]json.RawMessage{}
	if len(object) > 0 {
		if err := json.Unmarshal(object, &m); err != nil {
			return nil, err
		}
	}
	for k, v := range add {
		b, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		m[k] = b
	}
	return json.Marshal(m)
}

// modernParams gives params the metadata of the client's own requests.
func (c *conversation) modernParams(m *jsonrpc.Outgoing, params map[string]any) map[string]any {
	meta := map[string]json.RawMessage{}
	for _, k := range []string{metaVersion, metaClientInfo, metaCapabilities} {
		if v := member(c.meta, k); v != nil {
			meta[k] = v
		}
	}
	params["_meta"] = meta
	if v := stringAt(c.meta, metaVersion); v != "" {
		m.Header = map[string]string{headerVersion: v}
	}
	return params
}

func encode(m jsonrpc.Outgoing, params any) (json.RawMessage, error) {
	body := struct {
		Version string     `json:"jsonrpc"`
		ID      jsonrpc.ID `json:"id,omitempty"`
		Method  string     `json:"method"`
		Params  any        `json:"params,omitempty"`
	}{"2.0", m.ID, m.Method, params}
	return json.Marshal(body)
}

// DeclareElicitation declares in a client's message that it can be asked, where
// it does not say so itself: in initialize, or in the metadata of a request of
// the modern era. Nothing else of the text changes. ok is false when there was
// nothing to do.
func DeclareElicitation(message []byte) (changed []byte, ok bool) {
	at, path := message, []string{"params", "capabilities"}
	version := ""
	if stringAt(message, "method") == "initialize" {
		version = stringAt(message, "params", "protocolVersion")
	} else {
		if version = stringAt(message, "params", "_meta", metaVersion); version == "" {
			return message, false
		}
		path = []string{"params", "_meta", metaCapabilities}
	}
	caps := memberAt(at, path...)
	if !isObject(caps) || member(caps, "elicitation") != nil {
		return message, false
	}
	i, found := begins(message, path)
	if !found {
		return message, false
	}
	add := `"elicitation":{}`
	if version >= versionCore {
		add = `"elicitation":{"form":{},"url":{}}`
	}
	if !bare(caps) {
		add += ","
	}
	out := make([]byte, 0, len(message)+len(add))
	out = append(out, message[:i+1]...)
	out = append(out, add...)
	return append(out, message[i+1:]...), true
}

// bare reports whether an object has no members at all.
func bare(b json.RawMessage) bool {
	none := true
	members(b, func(string, json.RawMessage) bool { none = false; return false })
	return none
}

// begins is where the value at a path begins in b.
func begins(b []byte, path []string) (int, bool) {
	i := space(b, 0)
	for _, name := range path {
		if i >= len(b) || b[i] != '{' {
			return 0, false
		}
		found := -1
		for i = space(b, i+1); i < len(b) && b[i] == '"'; {
			end := stringEnd(b, i)
			if end < 0 {
				return 0, false
			}
			key := text(b[i:end])
			if i = space(b, end); i >= len(b) || b[i] != ':' {
				return 0, false
			}
			i = space(b, i+1)
			if key == name {
				found = i // the last counts, as in member
			}
			if end = valueEnd(b, i); end <= i {
				return 0, false
			}
			if i = space(b, end); i < len(b) && b[i] == ',' {
				i = space(b, i+1)
			}
		}
		if found < 0 {
			return 0, false
		}
		i = found
	}
	return i, i < len(b)
}

// ToolOf is the tool that a tools/call names.
func ToolOf(message []byte) string { return stringAt(message, "params", "name") }
