package monitor

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
)

// A call whose process ended before the server answered stands as sent with an
// unknown outcome, once, and is never sent again by the program. One that was
// answered leaves nothing.
func TestACallThatNobodyKnowsTheEndOf(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.start = func(ctx context.Context, c mcp.StartCall) (mcp.Started, error) {
			if string(c.Args) == `{"n":1}` {
				return mcp.Started{Outcome: taskmodel.Outcome{Result: json.RawMessage(`{}`)}}, nil
			}
			<-ctx.Done()
			return mcp.Started{}, ctx.Err()
		}
		dir := t.TempDir()
		j := openJournal(t, dir, "first")
		r := run(t, with(j), []string{"ci"}, f)
		r.sleep(time.Second)
		if _, err := r.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "build", Args: json.RawMessage(`{"n":1}`)}); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = r.m.Start(context.Background(), StartRequest{Server: "ci", Tool: "build", Args: json.RawMessage(`{"n":2}`)})
		}()
		r.sleep(time.Second)
		r.end()
		closeJournal(t, j)
		sent := f.total("start")
		for again, want := range []int{1, 0} {
			j := openJournal(t, dir, "later")
			r := run(t, with(j), []string{"ci"}, f)
			r.sleep(time.Second)
			var told []string
			for _, e := range r.heard(taskmodel.EventError) {
				if strings.Contains(e.Message, "outcome unknown") && strings.Contains(string(e.Detail), `"n":2`) {
					told = append(told, e.Message)
				}
			}
			if warned := strings.Contains(r.server("ci").Warning, "outcome unknown"); len(told) != want || warned != (want == 1) {
				t.Errorf("run %d: %q, warned %v", again+2, told, warned)
			}
			r.end()
			closeJournal(t, j)
		}
		if n := f.total("start"); n != sent || n != 2 {
			t.Errorf("%d calls were made, %d of them in the first run", n, sent)
		}
	})
}
