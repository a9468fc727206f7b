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
	var body json.RawMessage // params or result
	switch t.Kind {
	case jsonrpc.KindRequest:
		e.Kind, body = "request", member(t.Bytes, "params")
	case jsonrpc.KindNotification:
		e.Kind, body = "notification", member(t.Bytes, "params")
	case jsonrpc.KindResponse:
		e.Kind, body = "response", member(t.Bytes, "result")
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
	if id := stringAt(body, "taskId"); id != "" {
		return id
	}
	if id := stringAt(body, "task", "taskId"); id != "" {
		return id
	}
	if id := relatedTask(body).task; id != "" {
		return id
	}
	return stringAt(body, "_meta", "modelcontextprotocol.io/task", "taskId")
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
		list := member(body, "tasks")
		if !isArray(list) {
			return "/result/tasks is missing"
		}
		n, fault := 0, ""
		elements(list, func(v json.RawMessage) bool {
			fault = taskFault("/result/tasks/"+itoa(n), v, names)
			n++
			return fault == ""
		})
		return fault
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
