package demo

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// ask opens a step's questions.
func (e *engine) ask(j *job, s step) {
	j.epoch++
	j.answers = map[string]json.RawMessage{}
	j.then = s.then
	delegated := false
	for _, q := range s.ask {
		q := q
		q.key = j.freshKey(q.key)
		delegated = delegated || q.delegate
		j.questions = append(j.questions, &q)
	}
	if delegated {
		e.become(j, working, s.message)
	} else {
		e.become(j, inputRequired, s.message)
	}
	for _, q := range append([]*question(nil), j.questions...) {
		e.tell(event{kind: asked, job: j, question: q})
	}
	if s.patience > 0 {
		n := j.epoch
		e.at(e.time().Add(e.scaled(s.patience)), func() {
			if j.epoch == n && !j.deleted && !j.status.terminal() {
				e.withdraw(j, "the time to answer is over")
				e.proceed(j)
			}
		})
	}
}

// freshKey makes a key that this job has never used, since a key must stand
// for one request over a task's whole life.
func (j *job) freshKey(want string) string {
	key := want
	for n := 2; j.usedKeys[key]; n++ {
		key = fmt.Sprintf("%s-%d", want, n)
	}
	j.usedKeys[key] = true
	return key
}

func (j *job) open(key string) *question {
	for _, q := range j.questions {
		if q.key == key {
			return q
		}
	}
	return nil
}

// answer takes one answer: an ElicitResult, a CreateMessageResult. It returns
// errNoTask, errNoSuch, or an *invalidAnswer when the answer breaks its schema.
// Several answers of one message are one call: either all are taken or none.
// A nil answer is that the client has none to give.
func (e *engine) answer(id string, answers map[string]json.RawMessage) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	j := e.jobs[id]
	if j == nil {
		return errNoTask
	}
	for key, a := range answers {
		if q := j.open(key); q != nil && a != nil {
			if why := e.check.answer(q, a); why != "" {
				return &invalidAnswer{key: key, why: why}
			}
		}
	}
	took := false
	for i := 0; i < len(j.questions); i++ {
		q := j.questions[i]
		a, ok := answers[q.key]
		if !ok {
			continue
		}
		took = true
		j.questions = append(j.questions[:i], j.questions[i+1:]...)
		i--
		j.answers[askedAs(q.key)] = a
		if q.elicitID != "" && actionOf(a) == "accept" {
			e.visit(q.elicitID, 6*time.Second)
		}
	}
	if !took {
		return errNoSuch
	}
	if len(j.questions) > 0 {
		j.updated = e.said()
		if !j.hidden {
			e.tell(event{kind: changed, job: j, was: j.status})
		}
		return nil
	}
	e.proceed(j)
	return nil
}

// askedAs is the name under which a recipe asked, whatever the round.
func askedAs(key string) string {
	if i := strings.LastIndexByte(key, '-'); i > 0 && strings.Trim(key[i+1:], "0123456789") == "" {
		return key[:i]
	}
	return key
}

// proceed goes on after the questions.
func (e *engine) proceed(j *job) {
	then, answers := j.then, j.answers
	j.then, j.answers = nil, nil
	if then != nil {
		j.steps = append(then(answers), j.steps...)
	}
	e.become(j, working, "")
	e.resume(j, e.time())
}

// askAgain puts a question anew with words about what was wrong, for the
// generations in which an answer cannot be refused.
func (e *engine) askAgain(id, key, why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	j := e.jobs[id]
	if j == nil {
		return
	}
	q := j.open(key)
	if q == nil {
		return
	}
	again := *q
	again.key, again.claimed = j.freshKey(askedAs(key)), 0
	var p map[string]json.RawMessage
	if json.Unmarshal(q.params, &p) == nil {
		var message string
		_ = json.Unmarshal(p["message"], &message)
		if i := strings.Index(message, "\n\n"); i >= 0 && strings.HasPrefix(message, "Not accepted: ") {
			message = message[i+2:]
		}
		again.params = form("Not accepted: "+why+"\n\n"+message, q.schema)
	}
	*q = again
	e.tell(event{kind: asked, job: j, question: q})
}

// withdraw closes a job's open questions.
func (e *engine) withdraw(j *job, why string) {
	open := j.questions
	j.questions = nil
	for _, q := range open {
		e.tell(event{kind: withdrawn, job: j, question: q, why: why})
	}
}

// visit completes a URL elicitation after a while.
func (e *engine) visit(elicitID string, after time.Duration) {
	e.at(e.time().Add(e.scaled(after)), func() {
		e.tell(event{kind: visited, elicitID: elicitID})
	})
}

// An invalidAnswer breaks the schema of its question.
type invalidAnswer struct{ key, why string }

func (e *invalidAnswer) Error() string { return fmt.Sprintf("%s: %s", e.key, e.why) }

// answer says what is wrong with an answer, "" when nothing is.
func (k *checker) answer(q *question, a json.RawMessage) string {
	switch q.method {
	case "elicitation/create":
		var r struct {
			Action  string          `json:"action"`
			Content json.RawMessage `json:"content"`
		}
		if err := json.Unmarshal(a, &r); err != nil {
			return "the answer is no ElicitResult"
		}
		switch r.Action {
		case "decline", "cancel":
			return ""
		case "accept":
			if q.schema == nil {
				return ""
			}
			if len(r.Content) == 0 || string(r.Content) == "null" {
				return "accept without content"
			}
			return k.violations(q.schema, r.Content)
		}
		return fmt.Sprintf("action %q is none of accept, decline, cancel", r.Action)
	case "sampling/createMessage":
		var r struct {
			Role    string          `json:"role"`
			Model   string          `json:"model"`
			Content json.RawMessage `json:"content"`
		}
		if err := json.Unmarshal(a, &r); err != nil {
			return "the answer is no CreateMessageResult"
		}
		if r.Role != "assistant" && r.Role != "user" || r.Model == "" || len(r.Content) == 0 {
			return "a CreateMessageResult needs role, model and content"
		}
	}
	return ""
}

// actionOf is the action of an ElicitResult; "" when there was no answer.
func actionOf(a json.RawMessage) string {
	var r struct {
		Action string `json:"action"`
	}
	_ = json.Unmarshal(a, &r)
	return r.Action
}

// contentOf is the accepted content of an ElicitResult, nil without one.
func contentOf(a json.RawMessage) map[string]any {
	var r struct {
		Action  string         `json:"action"`
		Content map[string]any `json:"content"`
	}
	if json.Unmarshal(a, &r) != nil || r.Action != "accept" {
		return nil
	}
	if r.Content == nil {
		r.Content = map[string]any{}
	}
	return r.Content
}
