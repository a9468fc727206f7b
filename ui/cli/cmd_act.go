package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"mcptasks/taskmodel"
	"mcptasks/ui/safe"
)

func (r *run) refuseReadonly(what string) error {
	if r.g.Readonly {
		return failf("readonly", "", "refused to %s: mcptasks runs with --readonly", what)
	}
	return nil
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
				s.resolveAll(ctx, a, func(k taskmodel.Key) error {
					if del {
						if _, err := s.need(ctx, k.Server); err != nil {
							return err
						}
					}
					row := s.shape(k, false)
					err := s.m.Forget(ctx, k, del)
					if err == nil {
						done = append(done, row)
					}
					return err
				})
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
