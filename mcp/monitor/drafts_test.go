package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// A slowWriter is a journal that takes a while for what goes to another process
// and for a look at a question, and counts both.
type slowWriter struct {
	*journal.Journal
	mu       sync.Mutex
	n        int
	inflight int
	most     int
}

func (j *slowWriter) slow(ctx context.Context) {
	j.mu.Lock()
	j.n++
	j.inflight++
	j.most = max(j.most, j.inflight)
	j.mu.Unlock()
	pause(ctx, 50*time.Millisecond)
	j.mu.Lock()
	j.inflight--
	j.mu.Unlock()
}

func (j *slowWriter) PutIntent(ctx context.Context, in journal.Intent) (int64, error) {
	if in.Kind == "draft" {
		j.slow(ctx)
	}
	return j.Journal.PutIntent(ctx, in)
}

func (j *slowWriter) Question(ctx context.Context, target, id string) (taskmodel.Question, bool, error) {
	j.slow(ctx)
	return j.Journal.Question(ctx, target, id)
}

func (j *slowWriter) counted() (n, most int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n, most, j.n = j.n, j.most, 0
	return n, most
}

// One who types does not cause a transaction with each key, of which a later one
// might be overtaken by an earlier one; and what was typed last is kept, also
// when the program ends at once (issue C 2).
func TestDraftsBesideAreFewAndTheLastCounts(t *testing.T) {
	for _, c := range []struct {
		name string
		gen  taskmodel.Generation
		kind string
	}{{"held by another", taskmodel.GenCore, "stdio"}, {"each for itself", taskmodel.GenExtension, "http"}} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				dir := t.TempDir()
				f, g := newFake(c.gen), newFake(c.gen)
				f.kind, g.kind = c.kind, c.kind
				f.put("x", taskmodel.InputRequired)
				g.put("x", taskmodel.InputRequired)
				ja := openJournal(t, dir, "mcptasks")
				a := run(t, with(ja), []string{"ci"}, f)
				a.sleep(time.Second)
				if _, err := a.m.Add(t.Context(), "ci", "x"); err != nil {
					t.Fatal(err)
				}
				jb := &slowWriter{Journal: openJournal(t, dir, "mcptasks")}
				b := run(t, func(o *Options) { o.Journal = jb }, []string{"ci"}, g)
				b.sleep(3 * time.Second)
				f.last().h.Asked(question("x/k", "x"))
				if c.kind == "http" {
					g.last().h.Asked(question("x/k", "x"))
				}
				b.sleep(3 * time.Second)
				id := taskmodel.QuestionID{Server: "ci", ID: "x/k"}
				jb.counted()
				for i := range 100 {
					b.m.SaveDraft(id, json.RawMessage(fmt.Sprintf(`{"a":"typed %d"}`, i)))
					b.sleep(10 * time.Millisecond)
				}
				b.sleep(3 * time.Second)
				if n, most := jb.counted(); n < 2 || n > 5 || most != 1 {
					t.Errorf("a second of typing went out %d times, %d at once", n, most)
				}
				kept := func() string {
					q, _, err := ja.Question(t.Context(), "target:ci", "x/k")
					if err != nil {
						t.Fatal(err)
					}
					return string(q.Draft)
				}
				if got := kept(); got != `{"a":"typed 99"}` {
					t.Errorf("kept: %s", got)
				}
				for i := range 5 {
					b.m.SaveDraft(id, json.RawMessage(fmt.Sprintf(`{"a":"at the end %d"}`, i)))
				}
				b.end()
				a.sleep(3 * time.Second)
				if err := ja.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := kept(); got != `{"a":"at the end 4"}` {
					t.Errorf("kept at the end: %s", got)
				}
			})
		})
	}
}
