package monitor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
)

// slowPages is a listing of pages with n tasks each, each of which takes a
// while.
func slowPages(pages, n int, takes time.Duration) func(context.Context, string) (mcp.Page, error) {
	return func(ctx context.Context, cursor string) (mcp.Page, error) {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return mcp.Page{}, ctx.Err()
		}
		at, _ := strconv.Atoi(cursor)
		var p mcp.Page
		for i := range n {
			p.Tasks = append(p.Tasks, snap(fmt.Sprintf("t%02d-%02d", at, i), taskmodel.Completed))
		}
		if at+1 < pages {
			p.Next = strconv.Itoa(at + 1)
		}
		return p, nil
	}
}

// The first page of a server shows when it has come, and the last one too: what
// a person waits for does not wait for the pace of the versions.
func TestFirstAndLastPageShowAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const pages, each, takes = 9, 10, 7 * time.Millisecond // the last but little after a version
		f := newFake(taskmodel.GenCore)
		f.list = slowPages(pages, each, takes)
		r := run(t, nil, []string{"ci"}, f)
		began := time.Time{}
		shown := map[int]time.Duration{}
		for len(shown) == 0 || r.m.Board().Len() < pages*each {
			select {
			case <-r.m.Dirty():
			case <-time.After(time.Minute):
				t.Fatalf("%d tasks after a minute", r.m.Board().Len())
			}
			if began.IsZero() && f.total("list") > 0 {
				began = f.at("list")
			}
			if n := r.m.Board().Len(); n > 0 && shown[n] == 0 {
				shown[n] = time.Since(began)
			}
		}
		if shown[each] != takes {
			t.Errorf("the first page showed after %s, it came after %s", shown[each], takes)
		}
		if all := shown[pages*each]; all != pages*takes {
			t.Errorf("all showed after %s, they came after %s", all, pages*takes)
		}
		if s := r.server("ci"); s.Listing || s.ListIncomplete != "" {
			t.Errorf("listing %t, incomplete %q", s.Listing, s.ListIncomplete)
		}
	})
}

// A page that was asked for before the bound was met is not taken, and none is
// asked for after it.
func TestBoundWithAPageUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.list = slowPages(20, 10, 50*time.Millisecond)
		r := run(t, func(o *Options) { o.MaxTasksPerServer = 25 }, []string{"ci"}, f)
		r.sleep(10 * time.Second)
		if n := r.board().Len(); n != 25 {
			t.Errorf("%d tasks, want 25", n)
		}
		if n := f.total("list"); n > 4 {
			t.Errorf("%d pages were asked for", n)
		}
		if s := r.server("ci"); s.Listing || !strings.Contains(s.ListIncomplete, "more than 25 tasks") {
			t.Errorf("listing %t, incomplete %q", s.Listing, s.ListIncomplete)
		}
	})
}

// at is when a method was first called.
func (f *fakeServer) at(method string) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.log {
		if c.method == method {
			return c.at
		}
	}
	return time.Time{}
}

// What a glance finds ended already is shown and not written down; what is not
// over is, and so is the end of what was known before.
func TestGlanceRemembersWhatIsNotOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		f := newFake(taskmodel.GenCore)
		f.put("known", taskmodel.Working)
		a := run(t, with(openJournal(t, dir, "mcptasks")), []string{"ci"}, f)
		a.sleep(2 * time.Second)
		a.end()
		f = newFake(taskmodel.GenCore)
		f.put("known", taskmodel.Completed)
		f.put("over", taskmodel.Completed)
		f.put("runs", taskmodel.Working)
		j := openJournal(t, dir, "mcptasks ls")
		b := run(t, func(o *Options) { o.Journal, o.Glance, o.FetchResults = j, true, false }, []string{"ci"}, f)
		b.sleep(2 * time.Second)
		if n := b.board().Len(); n != 3 {
			t.Errorf("%d tasks show, want 3", n)
		}
		b.end()
		r, err := j.Restore(t.Context(), "target:ci")
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]taskmodel.Status{}
		for _, x := range r.Tasks {
			got[x.ID] = x.Status
		}
		if len(got) != 2 || got["known"] != taskmodel.Completed || got["runs"] != taskmodel.Working {
			t.Errorf("remembered: %v", got)
		}
	})
}

// A glance that finds a remembered task as it was writes nothing: a script that
// lists each minute must not write all that runs each minute.
func TestGlanceLeavesWhatIsAsItWas(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		f := newFake(taskmodel.GenCore)
		f.put("same", taskmodel.Working)
		f.put("other", taskmodel.Working)
		a := run(t, with(openJournal(t, dir, "mcptasks")), []string{"ci"}, f)
		a.sleep(2 * time.Second)
		a.end()
		time.Sleep(time.Hour)
		f.put("other", taskmodel.InputRequired)
		j := openJournal(t, dir, "mcptasks ls")
		began := time.Now()
		b := run(t, func(o *Options) { o.Journal, o.Glance, o.FetchResults = j, true, false }, []string{"ci"}, f)
		b.sleep(5 * time.Second)
		if x, ok := b.board().Task(taskmodel.Key{Server: "ci", ID: "same", Role: taskmodel.Requestor}); !ok || x.Standing != taskmodel.Live {
			t.Errorf("shown: %t %+v", ok, x)
		}
		b.end()
		r, err := j.Restore(t.Context(), "target:ci")
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range r.Tasks {
			if written := !x.LastHeardAt.Before(began); written != (x.ID == "other") {
				t.Errorf("%s, %s: written down: %t", x.ID, x.Status, written)
			}
		}
		if len(r.Tasks) != 2 {
			t.Errorf("%d tasks are remembered", len(r.Tasks))
		}
	})
}
