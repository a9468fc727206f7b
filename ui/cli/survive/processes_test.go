//go:build linux

package survive

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"mcptasks/taskmodel"
)

// D 5: two terminals and a script at once, on one state. Each sees what the
// others wrote; of many answers and cancels that are given at once one goes to
// the server; when the process that holds the server is killed the others go on.
func TestTwoTerminalsAndAScript(t *testing.T) {
	for _, gen := range []taskmodel.Generation{taskmodel.GenCore, taskmodel.GenExtension, taskmodel.GenDraft} {
		for _, overHTTP := range []bool{true, false} {
			p := newPlace(t, gen, overHTTP, 20)
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				together(t, p, newUser(t, p))
			})
		}
	}
}

func together(t *testing.T, p *place, u *user) {
	one := u.screens()
	eventually(t, "the first terminal", func() bool {
		return strings.Contains(one.out.String(), "ready") || strings.Contains(one.out.String(), "No tasks")
	})
	two, script := u.screens(), u.begin("watch")
	var deploy, hang task
	u.read(&deploy, "start", "p", "deploy_release", "service=api", "version=v9.9.1", "environment=staging")
	u.read(&hang, "start", "p", "reindex_search", "index=idx-1")
	began := time.Now()
	for name, out := range map[string]*buffer{"one": &one.out, "two": &two.out, "the script": &script.out} {
		eventually(t, name+" sees both tasks", func() bool {
			s := out.String()
			return strings.Contains(s, "deploy_release") && strings.Contains(s, "reindex_search")
		})
	}
	t.Logf("seen everywhere after %v", time.Since(began))
	eventually(t, "the script sees the question", func() bool {
		return strings.Contains(script.out.String(), `"event":"input"`) && strings.Contains(script.out.String(), "Deploy api")
	})

	// Five people answer at once, and five cancel.
	var acts []*running
	for i := range 5 {
		acts = append(acts, u.begin("answer", deploy.name(), "--accept", fmt.Sprintf(`{"strategy":"canary","ticket":"CHG-%06d"}`, 900+i)),
			u.begin("cancel", hang.name()))
	}
	said := ""
	for _, r := range acts {
		r.wait(t)
		said += r.errs.String()
		if r.code != 0 && r.errs.String() == "" {
			t.Errorf("%v: exit %d without a word", r.cmd.Args, r.code)
		}
	}
	answers := 0
	for i := range 5 {
		answers += p.marked(fmt.Sprintf("CHG-%06d", 900+i))
	}
	if answers != 1 {
		t.Errorf("%d answers went to the server\n%s", answers, said)
	}
	if n := p.cancels(hang.TaskID); n != 1 {
		t.Errorf("%d cancellations went to the server\n%s", n, said)
	}
	for name, out := range map[string]*buffer{"one": &one.out, "two": &two.out, "the script": &script.out} {
		eventually(t, name+" sees the cancellation", func() bool { return strings.Contains(out.String(), "cancelled") })
	}

	// The first terminal is killed. What it held goes on with the others.
	told := len(script.out.String())
	one.kill()
	<-one.done
	if p.gen != taskmodel.GenExtension || !p.http {
		// One of them takes the server. A command that came first would take it for
		// itself, and on stdio the program that it starts ends with it.
		eventually(t, "the script says who holds the server now", func() bool {
			return strings.Contains(script.out.String()[told:], `"event":"server"`)
		})
	}
	var next task
	u.read(&next, "start", "p", "reindex_search", "index=idx-2")
	eventually(t, "the script sees the next task", func() bool { return strings.Contains(script.out.String(), next.TaskID) })
	if r := u.run("cancel", next.name()); r.code != 0 && p.gen != taskmodel.GenDraft {
		// The draft cancels by the call, which is that of the process that made it.
		t.Errorf("cancel: exit %d: %s", r.code, r.errs.String())
	}
	if n := p.cancels(next.TaskID); n != 1 && p.gen != taskmodel.GenDraft || n > 1 {
		t.Errorf("%d cancellations of the next went to the server", n)
	}
	two.press("q")
	two.wait(t)
	script.stop(t)
	if script.code != 130 {
		t.Errorf("watch: exit %d: %s", script.code, script.errs.String())
	}
}

// D 5: each process sees within two seconds what the others wrote. What is timed
// is the journal's part: from the commit of one process to the change at
// another, which looks once a second.
func TestSeenWithinTwoSeconds(t *testing.T) {
	p := newPlace(t, taskmodel.GenCore, false, 1)
	u := newUser(t, p)
	holder := u.begin("watch")
	eventually(t, "a holder", func() bool { return strings.Contains(holder.out.String(), `"state":"ready"`) })
	other := u.begin("watch")
	// On a machine that is so busy that the holder does not get to renew its lease
	// in time, the two change their parts.
	eventually(t, "another that waits on it", func() bool {
		return strings.Contains(other.out.String(), "held by") || strings.Contains(holder.out.String(), "held by")
	})
	var x task
	u.read(&x, "start", "p", "reindex_search", "index=idx-1")
	at := func(r *running) (when time.Time) {
		eventually(t, "the task", func() bool {
			for _, line := range strings.Split(r.out.String(), "\n") {
				var e struct {
					Time time.Time
					Task *task
				}
				if json.Unmarshal([]byte(line), &e) == nil && e.Task != nil && e.Task.TaskID == x.TaskID {
					when = e.Time
					return true
				}
			}
			return false
		})
		return when
	}
	first, second := at(holder), at(other)
	t.Logf("seen %v after the holder", second.Sub(first))
	var shown []task
	u.read(&shown, "ls")
	if len(shown) != 1 || shown[0].TaskID != x.TaskID {
		t.Errorf("ls: %+v", shown)
	}
	eventually(t, "whose it is", func() bool {
		return strings.Contains(u.want(0, "ls", "-o", "json").out.String(), "held by mcptasks watch")
	})
	rest, err := u.look().Restore(context.Background(), strings.ReplaceAll(p.target, "'", ""))
	if err != nil || len(rest.Tasks) != 1 {
		t.Errorf("%+v %v", rest, err)
	}
}
