package mcp

import (
	"encoding/json"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/taskmodel"
)

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
