package monitor

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// An ailing journal fails to be written for a while.
type ailing struct {
	*journal.Journal
	ill atomic.Bool
}

func (a *ailing) Err() error {
	if a.ill.Load() {
		return errors.New("no space left on device")
	}
	return nil
}

// That nothing is remembered is taken back when it is over, whatever else the
// row warns of, before it or after.
func TestTroubleOfTheJournalIsTakenBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		j := &ailing{Journal: openJournal(t, t.TempDir(), "mcptasks")}
		j.ill.Store(true)
		r := run(t, func(o *Options) { o.Journal, o.Servers[0].Warning = j, "first" }, []string{"ci"}, f)
		r.sleep(3 * time.Second)
		if err := r.m.do(t.Context(), func() {
			s := r.m.byName["ci"]
			s.change(func(row *taskmodel.Server) { row.Warning = join(row.Warning, "later") })
		}); err != nil {
			t.Fatal(err)
		}
		if w := r.server("ci").Warning; !strings.HasPrefix(w, "first") || !strings.Contains(w, "later") || !strings.Contains(w, forgets) {
			t.Errorf("while it cannot be written: %q", w)
		}
		j.ill.Store(false)
		r.sleep(3 * time.Second)
		if w := r.server("ci").Warning; !strings.HasPrefix(w, "first") || !strings.Contains(w, "later") || strings.Contains(w, forgets) {
			t.Errorf("then: %q", w)
		}
	})
}
