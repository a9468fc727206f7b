package mcp

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/mcp/schematest"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
)

// The sessions with the peers are kept in testdata/peers, written anew with
// MCPTASKS_RECORD=1 and played to the same steps where the peers are not
// installed.

// recorded writes a session with a peer down when MCPTASKS_RECORD is set.
func recorded(t *testing.T, name string, d Dialer) Dialer {
	if os.Getenv("MCPTASKS_RECORD") == "" {
		return d
	}
	r := &recorder{Dialer: d, check: schematest.NewChecker(t, taskmodel.GenNone)}
	t.Cleanup(func() { // runs when the connection has been closed
		if t.Failed() {
			return
		}
		if err := os.WriteFile(filepath.Join("testdata", "peers", name+".jsonl"), r.b.Bytes(), 0o644); err != nil {
			t.Error(err)
		}
	})
	return r
}

// A replayedPeer is a dialer whose server says what was recorded, each message
// when the client has sent what came before it. What a client makes up (ids,
// tokens, ids of its own tasks) is mapped to what it makes up this time.
type replayedPeer struct {
	*transport.PipeServer
	t     *testing.T
	lines []string

	mu   sync.Mutex
	sent []json.RawMessage // by the client, not yet looked for
	more chan struct{}
}

func replayPeer(t *testing.T, name string) Dialer {
	b, err := os.ReadFile(filepath.Join("testdata", "peers", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	p := &replayedPeer{t: t, lines: strings.Split(strings.TrimSpace(string(b)), "\n"), more: make(chan struct{}, 1)}
	p.PipeServer = transport.PipeDialer(p.serve)
	return p
}

func (p *replayedPeer) Failed(jsonrpc.ID, error) {}
func (p *replayedPeer) Noise(string, []byte)     {}
func (p *replayedPeer) Message(b json.RawMessage, _ string, _ jsonrpc.ID) {
	p.mu.Lock()
	p.sent = append(p.sent, b)
	p.mu.Unlock()
	select {
	case p.more <- struct{}{}:
	default:
	}
}

func (p *replayedPeer) serve(ctx context.Context, conn jsonrpc.Conn) {
	if err := conn.Start(ctx, p); err != nil {
		p.t.Error(err)
	}
	ids := map[string]json.RawMessage{} // recorded ids of the client's requests
	made := []string{}                  // what the client made up, then and now
	for _, line := range p.lines {
		if ctx.Err() != nil {
			return
		}
		line = strings.NewReplacer(made...).Replace(line)
		then := json.RawMessage(line[2:])
		if line[0] == '<' {
			out := then
			if id := ids[string(member(then, "id"))]; member(then, "method") == nil && id != nil {
				var m map[string]json.RawMessage
				if err := json.Unmarshal(then, &m); err != nil {
					p.t.Error(err)
				}
				m["id"] = id
				out, _ = json.Marshal(m)
			}
			if err := conn.Send(ctx, jsonrpc.Outgoing{Bytes: out}); err != nil {
				return
			}
			continue
		}
		now := p.take(ctx, then)
		if now == nil {
			return
		}
		if id := member(then, "id"); id != nil && member(then, "method") != nil {
			ids[string(id)] = member(now, "id")
		}
		for _, path := range [][]string{{"params", "_meta", "progressToken"}, {"result", "task", "taskId"}} {
			if a, b := stringAt(then, path...), stringAt(now, path...); a != "" && a != b {
				made = append(made, a, b)
			}
		}
	}
	<-conn.Done()
}

// take waits for what the client is to send next: the same method about the
// same thing, or the answer to the same request.
func (p *replayedPeer) take(ctx context.Context, want json.RawMessage) json.RawMessage {
	key := func(b json.RawMessage) string {
		if m := stringAt(b, "method"); m != "" {
			return m + " " + stringAt(b, "params", "name") + stringAt(b, "params", "taskId")
		}
		return "answer " + string(member(b, "id"))
	}
	timer := time.NewTimer(20 * time.Second)
	defer timer.Stop()
	for {
		p.mu.Lock()
		for i, b := range p.sent {
			if key(b) == key(want) {
				p.sent = append(p.sent[:i:i], p.sent[i+1:]...)
				p.mu.Unlock()
				return b
			}
		}
		p.mu.Unlock()
		select {
		case <-p.more:
		case <-ctx.Done():
			return nil
		case <-timer.C:
			p.t.Errorf("the client did not send: %s", want)
			return nil
		}
	}
}
