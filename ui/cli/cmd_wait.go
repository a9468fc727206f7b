package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/ui/safe"
)

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
				keys := s.resolveAll(ctx, a, nil)
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
	_, err := beside(ctx, s, keys, "", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.await(ctx, func(v *board.Version) bool {
			return !slices.ContainsFunc(keys, func(k taskmodel.Key) bool {
				t, ok := v.Task(k)
				return ok && !over(t)
			})
		})
	})
	return err
}

// over reports whether nothing more is to be waited for: the task has ended, or
// its server does not know it.
func over(t taskmodel.Task) bool {
	return t.Terminal() || t.Standing == taskmodel.Gone || t.Standing == taskmodel.Expired
}

// endedBadly reports whether a task did not complete without a tool error. The
// draft and the extension call a tool's own error completed, so the result is
// looked at; that also keeps it here when the server has forgotten it.
func (s *session) endedBadly(ctx context.Context, k taskmodel.Key) bool {
	t := s.task(k)
	if t.Status != taskmodel.Completed {
		return over(t)
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
		ValidArgsFunction: once(r.completeTasks),
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
	c.Flags().StringVar(&save, "save", "", "write every content block to a file in this `FOLDER`")
	return c
}

// see waits for a task's result and prints it. With withTask the last row is
// printed too. On a timeout or where input is needed the last row alone is.
func (s *session) see(ctx context.Context, k taskmodel.Key, withTask bool, saveDir string) error {
	o, err := beside(ctx, s, []taskmodel.Key{k}, "", func(ctx context.Context) (taskmodel.Outcome, error) { return s.m.Fetch(ctx, k) })
	if err != nil {
		e := classify(err, k.Server)
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
	if t.Status != taskmodel.Completed || toolFailed(o) {
		s.code = worse(s.code, exitFailed)
	}
	if saveDir != "" {
		return s.save(k, o, saveDir)
	}
	return s.printOutcome(k, k.Server, o, withTask)
}

func (s *session) rows(k taskmodel.Key) [][]string {
	t := s.task(k)
	return [][]string{{statusWords(t), safe.Line(k.String()), safe.Line(t.Tool), messageWords(t)}}
}

// beside runs f while the questions of the tasks and of the named server are
// answered as --on-input says. What ends first ends both.
func beside[T any](ctx context.Context, s *session, keys []taskmodel.Key, server string, f func(context.Context) (T, error)) (T, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	asked := s.serve(ctx, keys, server)
	type reply struct {
		v   T
		err error
	}
	done := make(chan reply, 1)
	go func() {
		v, err := f(ctx)
		done <- reply{v, err}
	}()
	select {
	case rep := <-done:
		return rep.v, rep.err
	case err := <-asked:
		var none T
		return none, err
	}
}
