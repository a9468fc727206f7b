package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"mcptasks/taskmodel"
	"mcptasks/ui/safe"
)

type watchJSON struct {
	Time   string          `json:"time"`
	Event  string          `json:"event"` // task | server | input | log
	Server string          `json:"server,omitempty"`
	TaskID string          `json:"taskId,omitempty"`
	Task   *taskJSON       `json:"task,omitempty"`
	Input  *inputJSON      `json:"input,omitempty"`
	State  *serverJSON     `json:"state,omitempty"`
	Log    json.RawMessage `json:"log,omitempty"`
}

func (r *run) watchCmd() *cobra.Command {
	return &cobra.Command{
		Use: "watch [TASK…]", Short: "Events until interrupted, or until the named tasks have ended",
		Long:              "Sentences on a terminal; JSON Lines when piped or with -o.",
		Example:           "  mcptasks watch -o jsonl\n  mcptasks watch ci/7f3a91c2",
		ValidArgsFunction: r.completeTasks,
		RunE: func(cmd *cobra.Command, a []string) error {
			ctx, cancel := r.bound(cmd.Context(), 0)
			defer cancel()
			only, err := serversOf(a)
			if err != nil {
				return err
			}
			lines := !r.env.StdoutTTY || cmd.Flags().Changed("output") && r.g.Output != "table"
			if r.g.OnInput == "exit" && len(a) == 0 && !cmd.Flags().Changed("on-input") {
				r.g.OnInput = "" // only shows questions
			}
			r.g.Fetch = true
			var events <-chan taskmodel.Event
			stop := func() {}
			defer func() { stop() }()
			return r.withMonitorFrom(ctx, orNil(only), func(s *session) {
				events, stop = s.m.Events(256)
			}, func(ctx context.Context, s *session) error {
				return s.watch(ctx, a, lines, events)
			})
		},
	}
}

func (s *session) watch(ctx context.Context, a []string, lines bool, events <-chan taskmodel.Event) error {
	if len(s.o.Names) == 0 {
		fmt.Fprintln(s.env.Stderr, "mcptasks: "+nobody)
	}
	var broken error // of standard output
	keys := s.resolveAll(ctx, a, func(k taskmodel.Key) error {
		if broken == nil {
			broken = s.say(taskmodel.Event{Time: s.env.Now(), Kind: taskmodel.EventStatus, Server: k.Server, Task: k}, lines)
		}
		return nil
	})
	if broken != nil {
		return broken
	}
	if len(a) > 0 && len(keys) == 0 {
		return errSaid
	}
	var asked <-chan error
	if len(keys) > 0 && s.g.OnInput != "" {
		asked = s.serve(ctx, keys, "")
	}
	left := func() bool {
		for _, k := range keys {
			if !over(s.task(k)) {
				return true
			}
		}
		return len(keys) == 0
	}
	for left() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-asked:
			return err
		case e, ok := <-events:
			if !ok {
				return nil
			}
			if len(keys) > 0 && !slices.Contains(keys, e.Task) {
				continue
			}
			if err := s.say(e, lines); err != nil {
				return err
			}
		}
	}
	for _, k := range keys {
		if s.endedBadly(ctx, k) {
			s.code = worse(s.code, exitFailed)
		}
	}
	return errSaid
}

// say prints one event.
func (s *session) say(e taskmodel.Event, lines bool) error {
	if !lines {
		if words := s.sentence(e); words != "" {
			return s.writeln(e.Time.Local().Format("15:04:05") + "  " + words)
		}
		return nil
	}
	v := s.m.Board()
	w := watchJSON{Time: stamp(e.Time), Server: e.Server, TaskID: e.Task.ID, Event: "task"}
	switch e.Kind {
	case taskmodel.EventServer:
		w.Event = "server"
		if sv, ok := v.Server(e.Server); ok {
			j := shapeServer(sv, v.Counts())
			w.State = &j
		}
	case taskmodel.EventQuestion:
		w.Event = "input"
		if q, ok := v.Question(e.Question); ok {
			j := shapeInput(q, true)
			w.Input = &j
		}
	case taskmodel.EventLog:
		w.Event, w.Log = "log", compact(e.Detail)
		if w.Log == nil {
			w.Log, _ = json.Marshal(map[string]string{"text": e.Message})
		}
	default:
		t := s.shape(e.Task, true)
		w.Task = &t
		w.Server, w.TaskID = "", ""
	}
	return writeJSON(s.env.Stdout, w)
}

// sentence says an event in plain words, for terminals without graces too.
func (s *session) sentence(e taskmodel.Event) string {
	v := s.m.Board()
	t, _ := v.Task(e.Task)
	name := safe.Line(e.Server) // of what concerns no task
	if e.Task.ID != "" {
		name = safe.Line(fmt.Sprintf("%s %s", e.Task.Server, orElse(t.Tool, "task"))) + " " + safe.Truncate(safe.Line(e.Task.ID), 8, "")
	}
	switch e.Kind {
	case taskmodel.EventServer:
		sv, _ := v.Server(e.Server)
		words := fmt.Sprintf("%s is %s.", e.Server, sv.State)
		if sv.Error != "" && sv.State != taskmodel.ServerReady {
			words += " " + safe.Line(sv.Error)
		}
		return words
	case taskmodel.EventQuestion:
		q, _ := v.Question(e.Question)
		words := fmt.Sprintf("%s asks for input (%s): %s", name, q.Kind, safe.Line(q.Message))
		if e.Task.ID == "" { // a command names the task that it answers for
			return words + " It is answered on the screens (mcptasks, then i)."
		}
		return words + " Answer it with: mcptasks answer " + safe.Line(e.Task.String())
	case taskmodel.EventLog, taskmodel.EventProgress:
		if e.Kind == taskmodel.EventProgress && t.Progress != nil {
			return fmt.Sprintf("%s is at %s. %s", name, progressWords(t), safe.Line(t.Progress.Message))
		}
		if e.Kind == taskmodel.EventProgress {
			return fmt.Sprintf("%s: a call goes on. %s", name, safe.Line(e.Message))
		}
		return fmt.Sprintf("%s says: %s", name, safe.Line(e.Message))
	case taskmodel.EventCreated:
		return fmt.Sprintf("%s was created.", name)
	case taskmodel.EventCancel:
		return fmt.Sprintf("%s: cancellation asked for.", name)
	case taskmodel.EventResult:
		return fmt.Sprintf("%s: the result is here. Read it with: mcptasks result %s", name, safe.Line(e.Task.String()))
	case taskmodel.EventGone:
		return fmt.Sprintf("%s is not known to its server any more. %s", name, safe.Line(t.Note))
	case taskmodel.EventForgotten:
		return fmt.Sprintf("%s was forgotten.", name)
	case taskmodel.EventAnswer:
		return fmt.Sprintf("%s: answered. %s", name, safe.Line(e.Message))
	case taskmodel.EventError:
		return fmt.Sprintf("%s: %s", name, safe.Line(e.Message))
	}
	words := fmt.Sprintf("%s is %s.", name, statusWords(t))
	if m := messageWords(t); m != "" {
		words += " " + m
	}
	return words
}
