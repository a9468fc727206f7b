package monitor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"mcptasks/taskmodel"
)

// "push" is said of a server only with proof: the acknowledgement of a
// subscription (2026-07-28 basic/patterns/subscriptions), or a notification that
// was heard (2025-11-25, draft).
func TestPushIsSaidWithProof(t *testing.T) {
	for _, gen := range []taskmodel.Generation{taskmodel.GenCore, taskmodel.GenDraft, taskmodel.GenExtension} {
		t.Run(string(gen), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFake(gen)
				f.can.Push = gen != taskmodel.GenCore
				f.put("x", taskmodel.Working)
				r := run(t, nil, []string{"ci"}, f)
				if _, err := r.m.Add(t.Context(), "ci", "x"); err != nil {
					t.Fatal(err)
				}
				r.sleep(time.Second)
				if r.server("ci").Pushing {
					t.Error("before anything came")
				}
				if gen == taskmodel.GenExtension {
					f.last().h.Pushing([]string{})
				} else {
					f.push("x")
				}
				r.sleep(time.Second)
				if !r.server("ci").Pushing {
					t.Error("not with proof")
				}
				if gen == taskmodel.GenExtension {
					// The subscription has ended, and a further one is refused.
					f.hook(func() { f.can.Push, f.can.PushWhy = false, "the server knows no subscriptions (-32601)" })
					f.last().h.Pushing(nil)
					r.sleep(time.Second)
					if s := r.server("ci"); s.Pushing || s.Can.Push || !strings.Contains(s.Can.PushWhy, "-32601") {
						t.Errorf("refused: %v %+v", s.Pushing, s.Can)
					}
					return
				}
				f.last().end(errors.New("the connection broke"))
				r.sleep(5 * time.Second)
				if s := r.server("ci"); s.State != taskmodel.ServerReady || s.Pushing {
					t.Errorf("on a new connection: %s %v", s.State, s.Pushing)
				}
			})
		})
	}
}
