package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/taskmodel/form"
	"mcptasks/ui/safe"
)

func (r *run) answerCmd() *cobra.Command {
	var key, accept string
	var decline, cancelIt bool
	c := &cobra.Command{
		Use: "answer TASK", Short: "Answer a task's question; without a flag, asks at the terminal",
		Example:           "  mcptasks answer deploy/7f3a91c2 --accept '{\"decision\":\"go on\"}'\n  mcptasks answer deploy/7f3a91c2 --key approve --decline",
		Args:              args(1, 1, "answer TASK [--key KEY] [--accept JSON|--decline|--cancel]"),
		ValidArgsFunction: once(r.completeTasks),
		RunE: func(cmd *cobra.Command, a []string) error {
			if err := r.refuseReadonly("answer"); err != nil {
				return err
			}
			acts := 0
			for _, on := range []bool{cmd.Flags().Changed("accept"), decline, cancelIt} {
				if on {
					acts++
				}
			}
			if acts > 1 {
				return usagef("--accept, --decline and --cancel do not go together")
			}
			if acts == 0 && !r.env.StdinTTY {
				return usagef("there is no terminal to ask at: give --accept JSON, --decline or --cancel")
			}
			// A person takes the time it takes; the server has the usual time in
			// all, and --timeout bounds both together.
			limit := usualLimit
			if acts == 0 {
				limit = 0
			}
			ctx, cancel := r.bound(cmd.Context(), limit)
			defer cancel()
			servers := newAllowance(usualLimit, r.g.HasLimit)
			only, err := serversOf(a)
			if err != nil {
				return err
			}
			return r.withMonitor(ctx, only, func(ctx context.Context, s *session) error {
				var k taskmodel.Key
				var q taskmodel.Question
				err := servers.use(ctx, func(ctx context.Context) (err error) {
					if k, err = s.resolve(ctx, a[0]); err == nil {
						q, err = s.question(ctx, k, key)
					}
					return err
				})
				if err != nil {
					return err
				}
				ans := taskmodel.Answer{Question: q.ID}
				switch {
				case decline:
					ans.Action = taskmodel.Decline
				case cancelIt:
					ans.Action = taskmodel.Cancel
				case cmd.Flags().Changed("accept"):
					ans.Action = taskmodel.Accept
					if ans.Content, err = acceptContent(q, accept, s.o.Schema); err != nil {
						return err
					}
				default:
					if ans, err = s.askPerson(ctx, q); err != nil {
						return err
					}
				}
				if err := servers.use(ctx, func(ctx context.Context) error { return s.m.Answer(ctx, ans) }); err != nil {
					return classify(err, k.Server)
				}
				if s.task(k).Generation == taskmodel.GenCore {
					// Its next question comes to whoever waits for the task's end now.
					s.afterAnswer(ctx, k)
				}
				s.sync(ctx)
				return s.printTasks([]taskmodel.Key{k}, true, true)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&key, "key", "", "which question (its `KEY`), where the task has several")
	f.StringVar(&accept, "accept", "", "accept with this content, as `JSON`")
	f.BoolVar(&decline, "decline", false, "decline")
	f.BoolVar(&cancelIt, "cancel", false, "dismiss without a choice")
	return c
}

// acceptContent checks what a person gave against what is asked.
func acceptContent(q taskmodel.Question, text string, l form.Limits) (json.RawMessage, error) {
	content := json.RawMessage(strings.TrimSpace(text))
	if q.Kind == taskmodel.AskURL {
		return nil, nil
	}
	if !json.Valid(content) {
		return nil, usagef("--accept: the content is no JSON")
	}
	if q.Kind == taskmodel.AskForm {
		if problems := form.ValidateAnswer(q.Schema, content, l); len(problems) > 0 {
			return nil, failf("usage", q.ID.Server, "the answer does not fit the question %q: %s; nothing was sent", safe.Line(q.Key), problemWords(problems))
		}
	}
	return content, nil
}

// question finds the open question to answer, opening its way where the task
// waits and its question has not come.
func (s *session) question(ctx context.Context, k taskmodel.Key, key string) (taskmodel.Question, error) {
	if qs := s.open(k, key); len(qs) > 0 {
		return oneQuestion(qs, k, key)
	}
	if _, err := s.need(ctx, k.Server); err != nil {
		return taskmodel.Question{}, err
	}
	if k.Role == taskmodel.Requestor {
		if _, err := s.m.Poll(ctx, k); err != nil && classify(err, k.Server).Kind != "failed" {
			return taskmodel.Question{}, classify(err, k.Server)
		}
	}
	if t := s.task(k); len(s.open(k, key)) == 0 && t.Status != taskmodel.InputRequired && k.Role == taskmodel.Requestor {
		return taskmodel.Question{}, failf("failed", k.Server, "%s asks nothing now: its status is %s", k, statusWords(t))
	}
	// In the extension a question stays under its key: who answers it by name
	// after an answer whose end nobody knows wants it sent again. Elsewhere the
	// server asks anew.
	if qs := s.unconfirmed(k, key); len(s.open(k, key)) == 0 && len(qs) > 0 && s.task(k).Generation == taskmodel.GenExtension {
		q, err := oneQuestion(qs, k, key)
		if err == nil {
			fmt.Fprintf(s.env.Stderr, "mcptasks: an answer to this was sent to %s before, and nobody knows what became of it; this one is sent too\n", k.Server)
		}
		return q, err
	}
	if len(s.open(k, key)) == 0 {
		if err := s.m.Ask(ctx, k); err != nil {
			return taskmodel.Question{}, classify(err, k.Server)
		}
		wait, stop := ctx, context.CancelFunc(func() {})
		if len(s.open(k, "")) > 0 { // it asks, but not this
			wait, stop = context.WithTimeout(ctx, otherKeys)
		}
		err := s.await(wait, func(*board.Version) bool { return len(s.open(k, key)) > 0 || s.task(k).Terminal() })
		stop()
		if others := s.open(k, ""); err != nil && ctx.Err() == nil && len(others) > 0 {
			return taskmodel.Question{}, usagef("%s asks nothing under the key %s; it asks %s", k, safe.Line(key), keysOf(others))
		}
		if err != nil {
			return taskmodel.Question{}, err
		}
	}
	qs := s.open(k, key)
	if len(qs) == 0 {
		return taskmodel.Question{}, failf("failed", k.Server, "%s asks nothing: %v", k, errNoQuestion)
	}
	return oneQuestion(qs, k, key)
}

func oneQuestion(qs []taskmodel.Question, k taskmodel.Key, key string) (taskmodel.Question, error) {
	if len(qs) > 1 && key == "" {
		return qs[0], usagef("%s asks %d things at once: choose with --key one of %s", k, len(qs), keysOf(qs))
	}
	return qs[0], nil
}

// otherKeys is how long a question with the key that was given is waited for
// while the task asks others: they may not come all at once.
const otherKeys = 2 * time.Second

// keysOf lists the keys of questions with what they ask.
func keysOf(qs []taskmodel.Question) string {
	keys := make([]string, len(qs))
	for i, q := range qs {
		keys[i] = safe.Line(q.Key)
		if m := safe.Line(q.Message); m != "" {
			keys[i] += " (" + safe.Truncate(m, 60, safe.Ellipsis) + ")"
		}
	}
	return strings.Join(keys, ", ")
}

// open lists a task's open questions, or the one with the key.
func (s *session) open(k taskmodel.Key, key string) []taskmodel.Question {
	return s.questions(k, key, taskmodel.QuestionState.Open)
}

// unconfirmed are the questions to which an answer was sent whose outcome is
// unknown.
func (s *session) unconfirmed(k taskmodel.Key, key string) []taskmodel.Question {
	return s.questions(k, key, func(st taskmodel.QuestionState) bool { return st == taskmodel.QuestionUnconfirmed })
}

func (s *session) questions(k taskmodel.Key, key string, in func(taskmodel.QuestionState) bool) []taskmodel.Question {
	var out []taskmodel.Question
	for _, q := range s.m.Board().Questions() {
		if q.Task == k && in(q.State) && (key == "" || q.Key == key) {
			out = append(out, q)
		}
	}
	return out
}

// serve answers, as --on-input says, the questions of the tasks given, those of
// the named server that belong to no task, and those that a server of either
// asks as a task of ours: its own task or call waits for them. What the named
// server asked before is somebody else's. What comes on its channel ends the
// command; nothing comes while there is nothing wrong.
func (s *session) serve(ctx context.Context, keys []taskmodel.Key, server string) <-chan error {
	out := make(chan error, 1)
	servers := []string{server}
	for _, k := range keys {
		servers = append(servers, k.Server)
	}
	seen := map[taskmodel.QuestionID]bool{}
	if server != "" {
		for _, q := range s.m.Board().Questions() {
			seen[q.ID] = q.ID.Server == server && q.State.Open()
		}
	}
	go func() {
		asked, given := map[taskmodel.Key]bool{}, map[taskmodel.Key]bool{}
		for {
			var next *taskmodel.Question
			var wants taskmodel.Key
			err := s.await(ctx, func(v *board.Version) bool {
				for _, q := range v.Questions() {
					mine := slices.Contains(keys, q.Task) || server != "" && q.Task.ID == "" && q.ID.Server == server ||
						q.Receiver && slices.Contains(servers, q.ID.Server)
					if mine && q.State.Open() && !seen[q.ID] && !remembered(v, q.Task) {
						next = &q
						return true
					}
				}
				for _, k := range keys {
					if !asked[k] && waitsUnheard(v, k) {
						wants = k
						return true
					}
				}
				return false
			})
			if err != nil {
				return // the command's own wait tells why
			}
			if next == nil && !given[wants] && s.justAnswered(wants) {
				// Its answer may have come, and the word of the server not yet.
				given[wants] = true
				s.afterAnswer(ctx, wants)
				continue
			}
			if next == nil {
				asked[wants] = true
				// A server may hand a question out once. It is taken only by one who
				// answers it, or to show it where it ends with this process anyway.
				if s.g.OnInput == "exit" && !(s.o.StdioOf != nil && s.o.StdioOf(wants.Server)) {
					out <- failf("input_needed", wants.Server, "%s needs input: mcptasks answer %s", wants, wants)
					return
				}
				if err := s.m.Ask(ctx, wants); err != nil {
					out <- classify(err, wants.Server)
					return
				}
				continue
			}
			seen[next.ID] = true
			if err := s.onInput(ctx, *next); err != nil {
				out <- err
				return
			}
		}
	}()
	return out
}

// remembered reports whether a task is known from an earlier run alone: what it
// asked then may have been answered after that.
func remembered(v *board.Version, k taskmodel.Key) bool {
	t, ok := v.Task(k)
	return ok && t.Standing == taskmodel.Restored
}

// waitsUnheard reports whether a task waits for input and its question has not
// come. In the extension, whose questions come with the status, an answer that
// the server has taken has yet to take effect.
func waitsUnheard(v *board.Version, k taskmodel.Key) bool {
	t, ok := v.Task(k)
	if !ok || t.Status != taskmodel.InputRequired || t.Role != taskmodel.Requestor || remembered(v, k) {
		return false
	}
	for _, q := range v.Questions() {
		taken := q.State == taskmodel.QuestionSending || q.State == taskmodel.QuestionAnswered
		if q.Task == k && (q.State.Open() || taken && t.Generation == taskmodel.GenExtension) {
			return false
		}
	}
	return true
}

// justAnswered reports whether a question of the task was answered after the
// server last said how the task stands.
func (s *session) justAnswered(k taskmodel.Key) bool {
	t := s.task(k)
	for _, q := range s.m.Board().Questions() {
		if q.Task == k && (q.State == taskmodel.QuestionSending || q.State == taskmodel.QuestionAnswered) && q.SentAt.After(t.StatusSince) {
			return true
		}
	}
	return false
}

// afterAnswer asks how a task stands that was just answered, and gives it a
// moment to go on.
func (s *session) afterAnswer(ctx context.Context, k taskmodel.Key) {
	_, _ = s.m.Poll(ctx, k) // where it fails, what is known has to do
	ctx, stop := context.WithTimeout(ctx, otherKeys)
	defer stop()
	_ = s.await(ctx, func(v *board.Version) bool {
		t, ok := v.Task(k)
		return !ok || t.Status != taskmodel.InputRequired || len(s.open(k, "")) > 0
	})
}

// howToAnswer says how a question can be answered after this command, whose end
// is that of the tasks of a server that is a command.
func (s *session) howToAnswer(q taskmodel.Question, who string) string {
	switch {
	case q.Task.ID == "":
		return "--on-input accept=JSON answers it, or a terminal"
	case s.o.StdioOf != nil && s.o.StdioOf(q.Task.Server):
		return q.Task.Server + " is a command, and the task ends with this process: the same with --on-input accept=JSON, or at a terminal, answers it"
	}
	return "mcptasks answer " + who
}

// onInput does with one question what --on-input says.
func (s *session) onInput(ctx context.Context, q taskmodel.Question) error {
	who := q.Task.String()
	if q.Task.ID == "" {
		who = q.ID.Server
	}
	policy := s.g.OnInput
	if s.g.Readonly {
		policy = "exit"
	}
	ans := taskmodel.Answer{Question: q.ID}
	switch {
	case policy == "exit":
		return failf("input_needed", q.ID.Server, "%s needs input (%s): %q; %s", who, q.Kind, safe.Line(q.Message), s.howToAnswer(q, who))
	case policy == "decline":
		ans.Action = taskmodel.Decline
	case policy == "cancel":
		ans.Action = taskmodel.Cancel
	case policy == "ask":
		var err error
		if ans, err = s.askPerson(ctx, q); err != nil {
			return err
		}
	default:
		if q.Kind != taskmodel.AskForm {
			return failf("input_needed", q.ID.Server, "%s asks for a %s, which --on-input accept=JSON cannot answer", who, q.Kind)
		}
		content, err := acceptContent(q, strings.TrimPrefix(policy, "accept="), s.o.Schema)
		if err != nil {
			return err
		}
		ans.Action, ans.Content = taskmodel.Accept, content
	}
	if err := s.m.Answer(ctx, ans); err != nil {
		return classify(err, q.ID.Server)
	}
	fmt.Fprintf(s.env.Stderr, "mcptasks: answered %s of %s: %s\n", safe.Line(q.Key), who, ans.Action)
	return nil
}
