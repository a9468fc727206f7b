package monitor

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
)

// A question of 2026-07-28 that is remembered from another connection is
// answered on a new one, which hears of it by the task's state: an answer that
// comes first makes it ask for that. A question that is truly gone is withdrawn.
func TestRememberedQuestionOnANewConnection(t *testing.T) {
	for _, still := range []bool{true, false} {
		t.Run(fmt.Sprint(still), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFake(taskmodel.GenExtension)
				var sent, looked int
				f.answer = func(context.Context, taskmodel.Answer) error {
					if looked = f.called("get", "t1"); looked == 0 || !still {
						return fmt.Errorf("ci: %w", mcp.ErrNoQuestion)
					}
					sent++
					return nil
				}
				r := run(t, nil, []string{"ci"}, f)
				r.sleep(time.Second)
				f.put("t1", taskmodel.InputRequired)
				q := question("t1/q", "t1")
				q.Task = key("ci", "t1")
				f.last().h.Asked(q)
				r.question("t1/q")
				f.forgetCalls()
				err := r.m.Answer(t.Context(), accept("t1/q"))
				state := r.question("t1/q").State
				if still && (err != nil || sent != 1 || state != taskmodel.QuestionAnswered) {
					t.Errorf("%v, sent %d times, %s", err, sent, state)
				}
				if !still && (!errors.Is(err, ErrNoQuestion) || sent != 0 || state != taskmodel.QuestionWithdrawn) {
					t.Errorf("%v, sent %d times, %s", err, sent, state)
				}
			})
		})
	}
}
