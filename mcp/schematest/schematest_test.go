package schematest

import (
	"testing"

	"mcptasks/taskmodel"
)

func TestChecker(t *testing.T) {
	if !Available() {
		t.Skip("the official schemas are not here (../shared/schema)")
	}
	type msg struct {
		d    Direction
		b    string
		good bool
	}
	for _, c := range []struct {
		name string
		g    taskmodel.Generation
		m    []msg
	}{
		{"a call as a task and its two answers", taskmodel.GenCore, []msg{
			{Sent, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","task":{"ttl":1}}}`, true},
			{Received, `{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"a","status":"working","createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:30:00Z","ttl":null}}}`, true},
			{Received, `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`, true},
			{Received, `{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"a"}}}`, false},
		}},
		{"a wrong request", taskmodel.GenCore, []msg{
			{Sent, `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":7}}`, false},
			{Sent, `{"jsonrpc":"2.0","id":1,"method":"tasks/get"}`, false},
			{Sent, `{"id":1,"method":"ping"}`, false},
		}},
		{"an answer of ours", taskmodel.GenCore, []msg{
			{Received, `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}`, true},
			{Sent, `{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"n":0.5}}}`, true},
			{Sent, `{"jsonrpc":"2.0","id":1,"result":{"action":"yes"}}`, false},
		}},
		{"the draft's own method", taskmodel.GenDraft, []msg{
			{Sent, `{"jsonrpc":"2.0","id":1,"method":"tasks/delete","params":{"taskId":"a"}}`, true},
			{Sent, `{"jsonrpc":"2.0","method":7}`, false},
		}},
		{"a modern request needs its metadata", taskmodel.GenExtension, []msg{
			{Sent, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, false},
			{Sent, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, true},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := NewChecker(t, c.g)
			for _, m := range c.m {
				if err := k.Err(m.d, []byte(m.b)); (err == nil) != m.good {
					t.Errorf("%s: %v", m.b, err)
				}
			}
			if k.Checked() != len(c.m) && c.g != taskmodel.GenDraft {
				t.Errorf("checked %d messages of %d", k.Checked(), len(c.m))
			}
		})
	}
}
