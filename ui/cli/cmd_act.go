package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mcptasks/mcp/monitor"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/taskmodel/form"
	"mcptasks/ui/safe"
)

func (r *run) refuseReadonly(what string) error {
	if r.g.Readonly {
		return failf("readonly", "", "refused to %s: mcptasks runs with --readonly", what)
	}
	return nil
}

func (r *run) startCmd() *cobra.Command {
	var argsJSON string
	var ttl time.Duration
	var plain, wait, noCheck bool
	c := &cobra.Command{
		Use: "start SERVER TOOL [ARG…]", Short: "Call a tool as a task",
		Long:              "ARG is key=value, typed by the tool's schema, or key:=JSON.",
		Example:           "  mcptasks start ci build target=linux jobs=4 --wait\n  mcptasks start ci build --args '{\"target\":\"linux\"}' --ttl 10m",
		Args:              args(2, -1, "start SERVER TOOL [ARG…]"),
		ValidArgsFunction: r.completeTools,
		RunE: func(cmd *cobra.Command, a []string) error {
			if err := r.refuseReadonly("start a tool"); err != nil {
				return err
			}
			limit := usualLimit
			if wait {
				limit = 0
			}
			ctx, cancel := r.bound(cmd.Context(), limit)
			defer cancel()
			return r.withMonitor(ctx, a[:1], func(ctx context.Context, s *session) error {
				sv, err := s.need(ctx, a[0])
				if err != nil {
					return err
				}
				raw, err := s.arguments(ctx, a[0], a[1], a[2:], argsJSON, noCheck)
				if err != nil {
					return err
				}
				if !plain && !wait && sv.HeldBy == "" && s.o.StdioOf != nil && s.o.StdioOf(a[0]) {
					fmt.Fprintf(r.env.Stderr, "mcptasks: %s is a command, and its tasks end with this process; add --wait to see it through\n", a[0])
				}
				return s.start(ctx, monitor.StartRequest{Server: a[0], Tool: a[1], Args: raw, TTL: ttl, Plain: plain}, wait)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&argsJSON, "args", "", "the arguments as JSON, @FILE, or - for standard input")
	f.DurationVar(&ttl, "ttl", 0, "how long the server should keep the task (what it grants is shown)")
	f.BoolVar(&plain, "plain", false, "call it without a task")
	f.BoolVar(&wait, "wait", false, "wait for the end and print the result")
	f.BoolVar(&noCheck, "no-check", false, "send arguments that do not fit the schema")
	return c
}

// arguments reads a call's arguments and checks them against the tool's schema.
func (s *session) arguments(ctx context.Context, server, tool string, pairs []string, argsJSON string, noCheck bool) (json.RawMessage, error) {
	if argsJSON != "" && len(pairs) > 0 {
		return nil, usagef("--args and ARG… do not go together")
	}
	tools, err := s.m.Tools(ctx, server)
	if err != nil {
		return nil, classify(err, server)
	}
	var schema json.RawMessage
	found := false
	for _, t := range tools {
		if t.Name == tool {
			schema, found = t.InputSchema, true
		}
	}
	if !found {
		return nil, failf("usage", server, "%s has no tool %q: mcptasks tools %s lists them", server, tool, server)
	}
	raw := json.RawMessage("{}")
	switch {
	case strings.HasPrefix(argsJSON, "@") || argsJSON == "-":
		f, err := openOr(strings.TrimPrefix(argsJSON, "@"), s.env.Stdin)
		if err != nil {
			return nil, usagef("--args: %v", err)
		}
		defer f.Close()
		if raw, err = io.ReadAll(io.LimitReader(f, 64<<20)); err != nil {
			return nil, usagef("--args: %v", err)
		}
	case argsJSON != "":
		raw = json.RawMessage(argsJSON)
	case len(pairs) > 0:
		if raw, err = form.ParseAssignments(schema, pairs); err != nil {
			return nil, usagef("%v", err)
		}
	}
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '{' || !json.Valid(raw) {
		return nil, usagef("the arguments are no JSON object")
	}
	if noCheck {
		return raw, nil
	}
	if problems := form.ValidateAnswer(schema, raw); len(problems) > 0 {
		return nil, failf("usage", server, "the arguments do not fit %s: %s (--no-check sends them all the same)", tool, problemWords(problems))
	}
	return raw, nil
}

func problemWords(problems []form.Problem) string {
	out := make([]string, len(problems))
	for i, p := range problems {
		out[i] = p.String()
	}
	return safe.Line(strings.Join(out, "; "))
}

// start makes the call; with wait it sees the task through.
func (s *session) start(ctx context.Context, req monitor.StartRequest, wait bool) error {
	asking, stop := context.WithCancel(ctx)
	defer stop()
	// A call may ask before it answers, so questions are served meanwhile.
	asked := s.serve(asking, nil, req.Server)
	type reply struct {
		monitor.StartReply
		err error
	}
	done := make(chan reply, 1)
	go func() {
		rep, err := s.m.Start(asking, req)
		done <- reply{rep, err}
	}()
	var rep reply
	select {
	case rep = <-done:
	case err := <-asked:
		return err
	}
	stop()
	if rep.err != nil {
		return classify(rep.err, req.Server)
	}
	if rep.Note != "" {
		fmt.Fprintln(s.env.Stderr, "mcptasks: "+safe.Line(rep.Note))
	}
	if rep.Key.ID == "" {
		if toolFailed(rep.Outcome) {
			s.code = worse(s.code, exitFailed)
		}
		return s.printOutcome(taskmodel.Key{}, req.Server, rep.Outcome, false)
	}
	if !wait {
		s.sync(ctx)
		return s.printTasks([]taskmodel.Key{rep.Key}, true, true)
	}
	return s.see(ctx, rep.Key, true, "")
}

// see waits for a task's result and prints it. With withTask the last row is
// printed too. On a timeout or where input is needed the last row alone is.
func (s *session) see(ctx context.Context, k taskmodel.Key, withTask bool, saveDir string) error {
	asking, stop := context.WithCancel(ctx)
	defer stop()
	asked := s.serve(asking, []taskmodel.Key{k}, "")
	type reply struct {
		o   taskmodel.Outcome
		err error
	}
	done := make(chan reply, 1)
	go func() {
		o, err := s.m.Fetch(asking, k)
		done <- reply{o, err}
	}()
	var rep reply
	select {
	case rep = <-done:
	case rep.err = <-asked:
		stop()
	}
	if rep.err != nil {
		e := classify(rep.err, k.Server)
		if ctx.Err() != nil {
			e = classify(context.Cause(ctx), k.Server)
		}
		if e.Kind == "input_needed" || e.Kind == "timeout" {
			s.sync(context.WithoutCancel(ctx))
			if withTask {
				t := s.shape(k, true)
				_ = s.print([]any{outcomeJSON{Server: k.Server, TaskID: k.ID, Task: &t}}, true, func() [][]string { return s.rows(k) })
			} else {
				_ = s.printTasks([]taskmodel.Key{k}, true, true)
			}
		} else if t := s.task(k); isGone(e, t) || t.Standing == taskmodel.Gone || t.Standing == taskmodel.Expired {
			return failf("failed", k.Server, "%s does not know %s any more, and no result of it was kept here", k.Server, k.ID)
		}
		return e
	}
	s.sync(ctx)
	// The row says how it ended; the result's own error flag counts as well.
	_ = s.await(ctx, func(v *board.Version) bool { t, ok := v.Task(k); return !ok || t.Terminal() })
	t := s.task(k)
	if t.Status != taskmodel.Completed || toolFailed(rep.o) {
		s.code = worse(s.code, exitFailed)
	}
	if saveDir != "" {
		return s.save(k, rep.o, saveDir)
	}
	return s.printOutcome(k, k.Server, rep.o, withTask)
}

func (s *session) rows(k taskmodel.Key) [][]string {
	t := s.task(k)
	return [][]string{{statusWords(t), safe.Line(k.String()), safe.Line(t.Tool), messageWords(t)}}
}

func (r *run) waitCmd() *cobra.Command {
	return &cobra.Command{
		Use: "wait TASK…", Short: "Wait until all the tasks have ended",
		Example:           "  mcptasks wait ci/7f3a91c2 --timeout 10m && echo built",
		Args:              args(1, -1, "wait TASK…"),
		ValidArgsFunction: r.completeTasks,
		RunE: func(cmd *cobra.Command, a []string) error {
			ctx, cancel := r.bound(cmd.Context(), 0)
			defer cancel()
			only, err := serversOf(a)
			if err != nil {
				return err
			}
			return r.withMonitor(ctx, only, func(ctx context.Context, s *session) error {
				var keys []taskmodel.Key
				for _, arg := range a {
					k, err := s.resolve(ctx, arg)
					if err != nil {
						r.code = r.joinErrors(r.code, err, k.Server)
						continue
					}
					keys = append(keys, k)
				}
				if len(keys) == 0 {
					return errSaid
				}
				if err := s.waitEnd(ctx, keys); err != nil {
					r.code = r.joinErrors(r.code, err, "")
				}
				for _, k := range keys {
					if s.endedBadly(ctx, k) {
						r.code = worse(r.code, exitFailed)
					}
				}
				if err := s.printTasks(keys, len(a) == 1, true); err != nil {
					return err
				}
				return errSaid
			})
		},
	}
}

// waitEnd waits until all tasks have ended or are gone, answering as --on-input
// says meanwhile.
func (s *session) waitEnd(ctx context.Context, keys []taskmodel.Key) error {
	asking, stop := context.WithCancel(ctx)
	defer stop()
	asked := s.serve(asking, keys, "")
	ended := make(chan error, 1)
	go func() {
		ended <- s.await(asking, func(v *board.Version) bool {
			for _, k := range keys {
				t, ok := v.Task(k)
				if ok && !t.Terminal() && t.Standing != taskmodel.Gone && t.Standing != taskmodel.Expired {
					return false
				}
			}
			return true
		})
	}()
	select {
	case err := <-ended:
		return err
	case err := <-asked:
		return err
	}
}

// endedBadly reports whether a task did not complete without a tool error. The
// draft and the extension call a tool's own error completed, so the result is
// looked at; that also keeps it here when the server has forgotten it.
func (s *session) endedBadly(ctx context.Context, k taskmodel.Key) bool {
	t := s.task(k)
	if t.Status != taskmodel.Completed {
		return t.Terminal() || t.Standing == taskmodel.Gone || t.Standing == taskmodel.Expired
	}
	o := t.Outcome
	if o.Result == nil && o.Err == nil {
		bounded, cancel := context.WithTimeout(ctx, usualLimit)
		defer cancel()
		var err error
		if o, err = s.m.Fetch(bounded, k); err != nil {
			return false // it did complete; that its result is lost is told by `result`
		}
	}
	return toolFailed(o)
}

func (r *run) resultCmd() *cobra.Command {
	var save string
	c := &cobra.Command{
		Use: "result TASK", Short: "What the original request would have returned",
		Example:           "  mcptasks result ci/7f3a91c2\n  mcptasks result ci/7f3a91c2 --save out/",
		Args:              args(1, 1, "result TASK"),
		ValidArgsFunction: r.completeTasks,
		RunE: func(cmd *cobra.Command, a []string) error {
			ctx, cancel := r.bound(cmd.Context(), 0)
			defer cancel()
			only, err := serversOf(a)
			if err != nil {
				return err
			}
			return r.withMonitor(ctx, only, func(ctx context.Context, s *session) error {
				k, err := s.resolve(ctx, a[0])
				if err != nil {
					return err
				}
				return s.see(ctx, k, false, save)
			})
		},
	}
	c.Flags().StringVar(&save, "save", "", "write every content block to a file in this folder")
	return c
}

func (r *run) cancelCmd() *cobra.Command {
	return &cobra.Command{
		Use: "cancel TASK…", Short: "Ask for cancellation",
		Example:           "  mcptasks cancel ci/7f3a91c2",
		Args:              args(1, -1, "cancel TASK…"),
		ValidArgsFunction: r.completeTasks,
		RunE: func(cmd *cobra.Command, a []string) error {
			if err := r.refuseReadonly("cancel"); err != nil {
				return err
			}
			ctx, cancel := r.bound(cmd.Context(), usualLimit)
			defer cancel()
			return r.eachTask(ctx, a, false, func(ctx context.Context, s *session, k taskmodel.Key) error {
				if _, err := s.need(ctx, k.Server); err != nil {
					return err
				}
				return s.m.Cancel(ctx, k)
			})
		},
	}
}

func (r *run) forgetCmd() *cobra.Command {
	var del bool
	c := &cobra.Command{
		Use: "forget TASK…", Short: "Drop a task here; --delete asks the server too",
		Example:           "  mcptasks forget lab/91d0c3f4 --delete",
		Args:              args(1, -1, "forget TASK…"),
		ValidArgsFunction: r.completeTasks,
		RunE: func(cmd *cobra.Command, a []string) error {
			if del {
				if err := r.refuseReadonly("delete"); err != nil {
					return err
				}
			}
			ctx, cancel := r.bound(cmd.Context(), usualLimit)
			defer cancel()
			only, err := serversOf(a)
			if err != nil {
				return err
			}
			return r.withMonitor(ctx, only, func(ctx context.Context, s *session) error {
				var done []any
				for _, arg := range a {
					k, err := s.resolve(ctx, arg)
					if err == nil && del {
						_, err = s.need(ctx, k.Server)
					}
					if err == nil {
						row := s.shape(k, false)
						if err = s.m.Forget(ctx, k, del); err == nil {
							done = append(done, row)
						}
					}
					r.code = r.joinErrors(r.code, err, k.Server)
				}
				if len(done) == 0 {
					return errSaid
				}
				if err := r.print(done, len(a) == 1, func() [][]string {
					var rows [][]string
					for _, d := range done {
						t := d.(taskJSON)
						rows = append(rows, []string{"forgotten", safe.Line(t.Server + "/" + t.TaskID)})
					}
					return rows
				}); err != nil {
					return err
				}
				return errSaid
			})
		},
	}
	c.Flags().BoolVar(&del, "delete", false, "ask the server to delete it (the draft's tasks/delete)")
	return c
}

var errNoQuestion = errors.New("no open question")
