package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"mcptasks/mcp"
	"mcptasks/mcp/jsonrpc"
	"mcptasks/taskmodel"
)

// A mouth is a connection to a server that says what the test has it say.
type mouth struct {
	sink jsonrpc.Sink
	done chan struct{}
}

func (c *mouth) Kind() string { return "stdio" }

func (c *mouth) Dial(context.Context, string) (jsonrpc.Conn, error) { return c, nil }

func (c *mouth) Start(_ context.Context, s jsonrpc.Sink) error { c.sink = s; return nil }

func (c *mouth) Send(_ context.Context, m jsonrpc.Outgoing) error {
	if m.Kind == jsonrpc.KindRequest {
		answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID)
		if m.Method == "initialize" {
			answer = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","serverInfo":{"name":"s","version":"1"},"capabilities":{"tasks":{"list":{},"cancel":{}}}}}`, m.ID)
		}
		go c.sink.Message(json.RawMessage(answer), "stdio", "")
	}
	return nil
}

func (c *mouth) Close(context.Context) error {
	select {
	case <-c.done:
	default:
		close(c.done)
	}
	return nil
}

func (c *mouth) Done() <-chan struct{} { return c.done }

func (c *mouth) Err() error { return jsonrpc.ErrClosed }

// A status notification from its bytes to the board of 10,000 tasks, wire log
// and scheduling included, with 20 versions for each 50,000; beside it a bare
// json.Unmarshal of the same bytes into the task's fields. Both run on one
// processor, so that time is cost.
func BenchmarkBytesToBoard(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const tasks = 10_000
	_, s, now := still(b, taskmodel.GenCore, tasks)
	m, conn := s.m, &mouth{done: make(chan struct{})}
	c, err := mcp.Connect(b.Context(), mcp.Options{Name: "ci", Dialer: conn, Handler: &ears{s, s.conn}, Generation: taskmodel.GenCore})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close(context.Background(), true)
	text := make([]json.RawMessage, 5*tasks)
	for i := range text {
		at := now.Add(time.Duration(i) * time.Millisecond).Format(time.RFC3339Nano)
		text[i] = json.RawMessage(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"task-%06d","status":"working","statusMessage":"Copying part %d of 97",`+
			`"createdAt":"2025-12-31T23:00:00Z","lastUpdatedAt":%q,"ttl":3600000,"pollInterval":5000}}`, i%tasks, i%97, at))
	}
	var bare, ours time.Duration
	n := 0
	for b.Loop() {
		const bundle = 250
		from := time.Now()
		for i := range bundle {
			var v struct {
				Method string
				Params struct {
					TaskID, Status, StatusMessage string
					CreatedAt, LastUpdatedAt      time.Time
					TTL, PollInterval             *int64
				}
			}
			if err := json.Unmarshal(text[(n+i)%len(text)], &v); err != nil || v.Params.TaskID == "" {
				b.Fatal(err)
			}
		}
		bare += time.Since(from)
		from = time.Now()
		for i := range bundle {
			conn.sink.Message(text[(n+i)%len(text)], "stdio", "")
		}
		*now = now.Add(bundle * 20 * time.Microsecond)
		m.turn()
		if n += bundle; n%2500 == 0 {
			m.publish()
		}
		ours += time.Since(from)
	}
	if t, ok := m.board.Task(s.key("task-000000")); !ok || t.Pushes == 0 {
		b.Fatal("nothing came to the board")
	}
	b.ReportMetric(float64(bare.Nanoseconds())/float64(n), "bare-ns")
	b.ReportMetric(float64(ours.Nanoseconds())/float64(n), "board-ns")
	b.ReportMetric(float64(ours)/float64(bare), "ratio")
}
