//go:build linux

package survive

import (
	"strings"
	"sync"
	"testing"

	"mcptasks/taskmodel"
)

// D "Show it": what was sent and not confirmed is never sent again by the
// program; a person who answers once more, by the task's name, has it sent.
func TestAnsweredAgainByTheirWord(t *testing.T) {
	p := newPlace(t, taskmodel.GenExtension, true, 20)
	u := newUser(t, p)
	var deploy task
	u.read(&deploy, "start", "p", "deploy_release", "service=api", "version=v9.9.1", "environment=staging")
	eventually(t, "the question", func() bool {
		return strings.Contains(u.run("get", deploy.name(), "-o", "json").out.String(), `"input_required"`)
	})
	first := u.ready("answer", deploy.name(), "--accept", `{"strategy":"canary","ticket":"CHG-000901"}`)
	var once sync.Once
	started := make(chan struct{})
	p.on(func(kind, mark string) (lost bool) {
		if kind == "answer" {
			once.Do(func() { <-started; first.kill(); lost = true })
		}
		return lost
	})
	first.start(t)
	close(started)
	<-first.done
	p.on(nil)
	if n := p.marked("CHG-000901"); n != 1 {
		t.Fatalf("the first answer was heard %d times", n)
	}
	again := u.want(0, "answer", deploy.name(), "--accept", `{"strategy":"canary","ticket":"CHG-000902"}`)
	if !strings.Contains(again.errs.String(), "nobody knows what became of it") {
		t.Errorf("it says %q", again.errs.String())
	}
	if p.marked("CHG-000901") != 1 || p.marked("CHG-000902") != 1 {
		t.Errorf("heard %d and %d times", p.marked("CHG-000901"), p.marked("CHG-000902"))
	}
}
