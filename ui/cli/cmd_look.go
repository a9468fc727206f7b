package cli

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/ui/safe"
)

const usualLimit = 30 * time.Second

func (r *run) serversCmd() *cobra.Command {
	return &cobra.Command{
		Use: "servers [SERVER…]", Short: "Each server: state, version, generation, what it can do with tasks, counts, last error",
		Example:           "  mcptasks servers -o json",
		ValidArgsFunction: r.completeServers,
		RunE: func(cmd *cobra.Command, only []string) error {
			ctx, cancel := r.bound(cmd.Context(), usualLimit)
			defer cancel()
			return r.withMonitor(ctx, orNil(only), func(ctx context.Context, s *session) error {
				late := s.settle(ctx, true) // what is known so far is shown even when time is over
				v := s.m.Board()
				counts := v.Counts()
				var values []any
				rows := [][]string{{"SERVER", "STATE", "GENERATION", "VERSION", "CAN", "TASKS", "TARGET", "ERROR"}}
				for _, sv := range v.Servers() {
					values = append(values, shapeServer(sv, counts))
					rows = append(rows, []string{sv.Name, string(sv.State), orElse(string(sv.Generation), "–"), orElse(safe.Line(sv.ProtocolVersion), "–"),
						canWords(sv), countWords(counts.ByServer[sv.Name]), safe.Line(sv.Target), orElse(safe.Line(sv.Error), "–")})
				}
				if err := r.printList(values, rows, nobody); err != nil {
					return err
				}
				return late
			})
		},
	}
}

func canWords(s taskmodel.Server) string {
	var can []string
	for _, c := range []struct {
		ok   bool
		word string
	}{{s.Can.List, "list"}, {s.Can.Start, "start"}, {s.Can.Cancel, "cancel"}, {s.Can.Push, "push"}} {
		if c.ok {
			can = append(can, c.word)
		}
	}
	if len(can) == 0 {
		return "–"
	}
	return strings.Join(can, ",")
}

func countWords(n map[taskmodel.Status]int) string {
	var out []string
	for _, st := range []taskmodel.Status{taskmodel.InputRequired, taskmodel.Working, taskmodel.Submitted, taskmodel.Completed, taskmodel.Failed, taskmodel.Cancelled, taskmodel.Unknown} {
		if n[st] > 0 {
			out = append(out, fmt.Sprintf("%d %s", n[st], strings.ReplaceAll(string(st), "_", " ")))
		}
	}
	return orElse(strings.Join(out, ", "), "none")
}

func (r *run) toolsCmd() *cobra.Command {
	return &cobra.Command{
		Use: "tools SERVER", Short: "A server's tools with their task support",
		Example:           "  mcptasks tools ci",
		Args:              args(1, 1, "tools SERVER"),
		ValidArgsFunction: once(r.completeServers),
		RunE: func(cmd *cobra.Command, a []string) error {
			ctx, cancel := r.bound(cmd.Context(), usualLimit)
			defer cancel()
			return r.withMonitor(ctx, a, func(ctx context.Context, s *session) error {
				if _, err := s.need(ctx, a[0]); err != nil {
					return err
				}
				tools, err := s.m.Tools(ctx, a[0])
				if err != nil {
					return classify(err, a[0])
				}
				var values []any
				rows := [][]string{{"TOOL", "AS A TASK", "DESCRIPTION"}}
				for _, t := range tools {
					values = append(values, shapeTool(t))
					rows = append(rows, []string{safe.Line(t.Name), t.TaskSupport, safe.Line(orElse(t.Description, t.Title))})
				}
				return r.printList(values, rows, a[0]+" has no tools")
			})
		},
	}
}

func (r *run) lsCmd() *cobra.Command {
	var chosen []string
	var filter string
	c := &cobra.Command{
		Use: "ls [SERVER…]", Short: "All tasks known to the servers and to this machine",
		Example:           "  mcptasks ls --status working,input_required\n  mcptasks ls ci --filter 'tool:build age:>5m' -o json",
		ValidArgsFunction: r.completeServers,
		RunE: func(cmd *cobra.Command, only []string) error {
			f, err := board.ParseFilter(filter)
			if err != nil {
				return usagef("--filter: %v", err)
			}
			ctx, cancel := r.bound(cmd.Context(), usualLimit)
			defer cancel()
			r.g.Glance = true
			return r.withMonitor(ctx, orNil(only), func(ctx context.Context, s *session) error {
				late := s.settle(ctx, true)
				v, now := s.m.Board(), r.env.Now()
				view := board.NewView()
				view.Set(board.Settings{Filter: f, Sort: board.SortNeeds, NeedsFirst: true, EndedLast: true})
				view.Update(v)
				want := map[string]bool{}
				for _, st := range chosen {
					want[strings.TrimSpace(st)] = true
				}
				rows := [][]string{{"STATUS", "TASK", "TOOL", "PROGRESS", "AGE", "TTL", "MESSAGE"}}
				table := r.g.Output == "table"
				out := &taskStream{w: bufio.NewWriterSize(r.env.Stdout, 1<<16), array: r.g.Output == "json"}
				view.Tasks(func(t *taskmodel.Task) bool {
					if len(want) > 0 && !want[string(t.Status)] {
						return true
					}
					if table {
						rows = append(rows, []string{statusWords(*t), safe.Line(t.Key.String()), orElse(safe.Line(t.Tool), "–"), orElse(progressWords(*t), "–"),
							ageWords(*t, now), ttlWords(*t, now), messageWords(*t)})
						return true
					}
					j := shapeTask(*t, v, false)
					err = out.put(&j)
					return err == nil
				})
				switch {
				case table:
					err = r.printList(nil, rows, "")
				case err == nil:
					err = out.end()
				}
				if err != nil && !table {
					err = fmt.Errorf("standard output: %w", err)
				}
				if err != nil {
					return err
				}
				none := noTasks(v, chosen, filter)
				for _, sv := range v.Servers() {
					if sv.ListIncomplete != "" {
						fmt.Fprintf(r.env.Stderr, "mcptasks: the list of %s is incomplete: %s\n", sv.Name, safe.Line(sv.ListIncomplete))
					}
					if err := serverError(sv); err != nil && sv.State != taskmodel.ServerOff && (sv.State != taskmodel.ServerFailed || len(only)+len(r.g.Servers) > 0) {
						r.code = r.joinErrors(r.code, err, sv.Name)
						none = "no tasks are known here"
					}
				}
				if table && len(rows) < 2 && late == nil {
					fmt.Fprintln(r.env.Stderr, "mcptasks: "+safe.Line(none))
				}
				return late
			})
		},
	}
	c.Flags().StringSliceVar(&chosen, "status", nil, "only these statuses, `a,b`")
	c.Flags().StringVar(&filter, "filter", "", "only tasks that match this filter `EXPR`")
	_ = c.RegisterFlagCompletionFunc("status", completeStatuses)
	return c
}

// noTasks says why a list is empty, and what to do about it.
func noTasks(v *board.Version, chosen []string, filter string) string {
	var off, bad []string
	for _, sv := range v.Servers() {
		switch {
		case sv.State == taskmodel.ServerOff && sv.HeldBy == "" && sv.Source != taskmodel.SourceTap:
			off = append(off, sv.Name)
		case sv.State == taskmodel.ServerFailed:
			bad = append(bad, sv.Name+" ("+sv.Error+")")
		}
	}
	switch {
	case len(v.Servers()) == 0:
		return nobody
	case v.Len() > 0 && len(chosen)+len(filter) > 0:
		words := fmt.Sprintf("none of %d tasks is like that", v.Len())
		for _, st := range chosen { // a server may have words of its own, so it is no error
			if !slices.Contains(statuses, strings.TrimSpace(st)) {
				words += fmt.Sprintf("; no generation has a status %q: they are %s", st, strings.Join(statuses, ", "))
				break
			}
		}
		return words
	}
	words := "no tasks"
	if len(off) > 0 {
		words += "; not started, since nobody named it: " + strings.Join(off, ", ") + " (mcptasks ls " + off[0] + " starts it)"
	}
	if len(bad) > 0 {
		words += "; cannot be used: " + strings.Join(bad, ", ")
	}
	return words
}

func (r *run) getCmd() *cobra.Command {
	return &cobra.Command{
		Use: "get TASK…", Short: "One fresh look at each task",
		Example:           "  mcptasks get ci/7f3a91c2 -o json",
		Args:              args(1, -1, "get TASK…"),
		ValidArgsFunction: r.completeTasks,
		RunE: func(cmd *cobra.Command, a []string) error {
			ctx, cancel := r.bound(cmd.Context(), usualLimit)
			defer cancel()
			return r.eachTask(ctx, a, true, func(ctx context.Context, s *session, k taskmodel.Key) error {
				if _, err := s.need(ctx, k.Server); err != nil {
					return err
				}
				_, err := s.m.Poll(ctx, k)
				s.sync(ctx)
				t := s.task(k)
				if err == nil && (t.Standing == taskmodel.Gone || t.Standing == taskmodel.Expired) || isGone(err, t) {
					return failf("failed", k.Server, "%s does not know %s any more: %s", k.Server, k.ID, orElse(t.Note, "gone"))
				}
				return err
			})
		},
	}
}

// isGone reports whether an error says no more than that a task that we know is
// not on its server now.
func isGone(err error, t taskmodel.Task) bool {
	e := classify(err, t.Server)
	return e != nil && e.Kind == "not_found" && !t.FirstHeardAt.IsZero()
}

// eachTask resolves each argument, does what is to be done with it, and prints
// the rows of those that are known: an object for one argument, else an array.
func (r *run) eachTask(ctx context.Context, a []string, full bool, do func(ctx context.Context, s *session, k taskmodel.Key) error) error {
	only, err := serversOf(a)
	if err != nil {
		return err
	}
	return r.withMonitor(ctx, only, func(ctx context.Context, s *session) error {
		keys := s.resolveAll(ctx, a, func(k taskmodel.Key) error {
			err := do(ctx, s, k)
			s.sync(ctx)
			return err
		})
		if len(keys) == 0 {
			return errSaid
		}
		if err := s.printTasks(keys, len(a) == 1, full); err != nil {
			return err
		}
		return errSaid
	})
}

func (s *session) printTasks(keys []taskmodel.Key, single, full bool) error {
	values := make([]any, len(keys))
	for i, k := range keys {
		values[i] = s.shape(k, full)
	}
	return s.print(values, single, func() [][]string {
		rows := [][]string{{"STATUS", "TASK", "TOOL", "PROGRESS", "AGE", "TTL", "MESSAGE"}}
		now := s.env.Now()
		for _, k := range keys {
			t := s.task(k)
			rows = append(rows, []string{statusWords(t), safe.Line(k.String()), orElse(safe.Line(t.Tool), "–"), orElse(progressWords(t), "–"),
				ageWords(t, now), ttlWords(t, now), messageWords(t)})
		}
		return rows
	})
}

func (r *run) addCmd() *cobra.Command {
	return &cobra.Command{
		Use: "add SERVER TASKID", Short: "Take up a task by its id",
		Example:           "  mcptasks add deploy 786512e2-9e0d-44bd-8f29-789f320fe840",
		Args:              args(2, 2, "add SERVER TASKID"),
		ValidArgsFunction: once(r.completeServers),
		RunE: func(cmd *cobra.Command, a []string) error {
			ctx, cancel := r.bound(cmd.Context(), usualLimit)
			defer cancel()
			return r.withMonitor(ctx, a[:1], func(ctx context.Context, s *session) error {
				if _, err := s.need(ctx, a[0]); err != nil {
					return err
				}
				t, err := s.m.Add(ctx, a[0], a[1])
				if err != nil {
					return classify(err, a[0])
				}
				s.sync(ctx)
				return s.printTasks([]taskmodel.Key{t.Key}, true, true)
			})
		},
	}
}

func (r *run) historyCmd() *cobra.Command {
	var prune, all bool
	var importFile, bundle string
	var withIDs bool
	c := &cobra.Command{
		Use: "history [TASK]", Short: "The audit trail: created, transitions, questions, answers, results, cancels",
		Example:           "  mcptasks history ci/7f3a91c2\n  mcptasks history -o jsonl >everything.jsonl\n  mcptasks history --prune",
		Args:              args(0, 1, "history [TASK]"),
		ValidArgsFunction: once(r.completeTasks),
		RunE: func(cmd *cobra.Command, a []string) error {
			ctx, cancel := r.bound(cmd.Context(), usualLimit)
			defer cancel()
			g := r.g
			g.Only, g.Headless = []string{}, true
			o, err := r.deps.Open(ctx, g)
			if err != nil {
				return err
			}
			defer func() {
				if o.Close != nil {
					_ = o.Close()
				}
			}()
			if o.Memory == nil { // which the notes tell the reason of
				return failf("failed", "", "there is no memory to read: %s", orElse(strings.Join(o.Notes, "; "), "the state folder cannot be used"))
			}
			for _, n := range o.Notes {
				fmt.Fprintln(r.env.Stderr, "mcptasks: "+n)
			}
			switch {
			case prune:
				said, err := o.Memory.Prune(ctx)
				if err != nil {
					return err
				}
				return r.done(said, map[string]any{"message": said})
			case importFile != "":
				f, err := openOr(importFile, r.env.Stdin)
				if err != nil {
					return usagef("--import: %v", err)
				}
				defer f.Close()
				said, err := o.Memory.Import(ctx, f)
				if err != nil {
					return usagef("--import %s: %v", importFile, err)
				}
				return r.done(said, map[string]any{"message": said})
			case all || len(a) == 0 && r.g.Output == "jsonl":
				return o.Memory.Export(ctx, r.env.Stdout)
			}
			server, id, role := "", "", taskmodel.Requestor
			if len(a) == 1 {
				if server, id, role, err = parseTask(a[0]); err != nil {
					return err
				}
			}
			if bundle != "" {
				return r.bundle(ctx, o, taskmodel.Key{Server: server, ID: id, Role: role}, bundle, withIDs)
			}
			events, err := o.Memory.History(ctx, server, id, 0)
			if err != nil {
				return err
			}
			if len(events) == 0 && len(a) == 1 {
				return failf("not_found", server, "this machine has no history of %s", a[0])
			}
			values := make([]any, len(events))
			for i, e := range events {
				values[i] = shapeHistory(e)
			}
			rows := [][]string{{"TIME", "TASK", "EVENT", "DETAIL"}}
			for _, e := range events {
				h := shapeHistory(e)
				rows = append(rows, []string{e.Time.Local().Format("2006-01-02 15:04:05"), safe.Line(h.Server + "/" + h.TaskID), h.Event, happened(h.Event, h.Detail)})
			}
			return r.printList(values, rows, "nothing is remembered yet")
		},
	}
	c.Flags().BoolVar(&prune, "prune", false, "drop what is older or larger than the settings allow")
	c.Flags().StringVar(&importFile, "import", "", "read the `FILE` that history -o jsonl wrote (- for standard input)")
	c.Flags().StringVar(&bundle, "bundle", "", "write one task with its messages to this `FILE`, secrets removed")
	c.Flags().BoolVar(&withIDs, "with-ids", false, "with --bundle: keep the task ids (an id alone can give access)")
	return c
}

func (r *run) bundle(ctx context.Context, o *Opened, k taskmodel.Key, path string, withIDs bool) error {
	if k.ID == "" {
		return usagef("--bundle needs a TASK")
	}
	// Made before the file is, so that a failure leaves none.
	var b bytes.Buffer
	if err := o.Memory.Bundle(ctx, k, nil, withIDs, &b); err != nil {
		return err
	}
	return toFile(path, r.env.Stdout, b.Bytes())
}

func orNil(a []string) []string {
	if len(a) == 0 {
		return nil
	}
	return a
}
