package mcp

import (
	"bytes"
	"encoding/json"
	"strings"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/taskmodel"
)

// traffic makes one message that passed into a line of the wire log. It runs
// on the connection's goroutines and costs a scan of the message.
func (s *session) traffic(t jsonrpc.Traffic) {
	e := taskmodel.WireEntry{
		At: t.At, Server: s.server(), Direction: taskmodel.Received, Method: t.Method, ID: t.ID.String(),
		Latency: t.Latency, Size: len(t.Bytes), Bytes: t.Bytes, Fault: t.Fault,
	}
	if t.Out {
		e.Direction = taskmodel.Sent
	}
	body := t.Body
	look := func(name string) {
		if body == nil {
			body = member(t.Bytes, name)
		}
	}
	switch t.Kind {
	case jsonrpc.KindRequest:
		e.Kind = "request"
		look("params")
	case jsonrpc.KindNotification:
		e.Kind = "notification"
		look("params")
	case jsonrpc.KindResponse:
		e.Kind = "response"
		look("result")
		if body == nil && member(t.Bytes, "error") != nil {
			e.Kind = "error"
		}
	default:
		e.Kind = "noise"
	}
	e.Task = taskOf(body)
	if !t.Out && e.Fault == "" {
		e.Fault = s.fault(e.Kind, t.Method, body)
	}
	s.handler().Wire(e)
}

// taskOf is the id of the task that a message names, "" when it names none.
func taskOf(body json.RawMessage) string {
	if !bytes.Contains(body, []byte(`"taskId"`)) {
		return ""
	}
	var own, task, meta json.RawMessage
	members(body, func(k string, v json.RawMessage) bool {
		switch k {
		case "taskId":
			own = v
		case "task":
			task = v
		case "_meta":
			meta = v
		}
		return true
	})
	if isString(own) {
		if id := text(own); id != "" {
			return id
		}
	}
	if id := stringAt(task, "taskId"); id != "" {
		return id
	}
	if id := relatedIn(meta).task; id != "" {
		return id
	}
	return stringAt(meta, "modelcontextprotocol.io/task", "taskId")
}

// fault says where a message about tasks breaks the schema of its generation,
// "" when it does not as far as is looked at: what a task must have, and what
// a question must have.
func (s *session) fault(kind, method string, body json.RawMessage) string {
	names := coreFields
	switch s.getInfo().Generation {
	case taskmodel.GenDraft:
		names = draftFields
	case taskmodel.GenExtension:
		names = extensionFields
	case taskmodel.GenNone:
		return ""
	}
	switch {
	case kind == "response" && (method == "tasks/get"):
		return taskFault("/result", body, names)
	case kind == "response" && method == "tools/call":
		if t := member(body, "task"); isObject(t) {
			return taskFault("/result/task", t, names)
		}
	case kind == "response" && method == "tasks/list":
		rows := readRows(body, names)
		s.rows.put(rows) // for who waits for the answer
		return rows.fault()
	case kind == "notification" && (method == notifyCore || method == notifyExtension):
		return taskFault("/params", body, names)
	case kind == "request" && method == methodElicit:
		if !isString(member(body, "message")) {
			return "/params/message is missing"
		}
		if m := stringAt(body, "mode"); m != "url" && !isObject(member(body, "requestedSchema")) {
			return "/params/requestedSchema is missing"
		}
	}
	return ""
}

// taskFault is where one task breaks its schema.
func taskFault(at string, task json.RawMessage, names fieldNames) string {
	snap, err := readTask(task, names)
	return snapFault(at, &snap, err)
}

// snapFault is taskFault for a task that has been read.
func snapFault(at string, snap *taskmodel.Snapshot, err error) string {
	if err != nil && len(snap.Missing) == 0 {
		return at + " is no task"
	}
	var all []string
	if len(snap.Missing) > 0 {
		all = append(all, at+"/"+strings.Join(snap.Missing, ", "+at+"/")+" missing")
	}
	for _, l := range snap.Lenient {
		all = append(all, at+": "+l)
	}
	return strings.Join(all, "; ")
}

func itoa(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}
