package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mcptasks/mcp"
	"mcptasks/mcp/monitor"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/form"
	"mcptasks/ui/safe"
)

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
	f.StringVar(&argsJSON, "args", "", "the arguments as `JSON`, @FILE, or - for standard input")
	f.DurationVar(&ttl, "ttl", 0, "how long the server should keep the task, as 10m (what it grants is shown)")
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
		if raw, err = form.ParseAssignments(schema, pairs, s.o.Schema); err != nil {
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
	if problems := form.ValidateAnswer(schema, raw, s.o.Schema); len(problems) > 0 {
		return nil, failf("usage", server, "the arguments do not fit %s: %s%s (--no-check sends them all the same)", tool, problemWords(problems), strangers(schema, raw))
	}
	return raw, nil
}

// strangers names the arguments that a tool does not have beside those that it
// has: what does not fit may be no more than a slip of the pen.
func strangers(schema, raw json.RawMessage) string {
	var s struct{ Properties map[string]json.RawMessage }
	var given map[string]json.RawMessage
	if json.Unmarshal(schema, &s) != nil || json.Unmarshal(raw, &given) != nil {
		return ""
	}
	var strange []string
	for _, k := range slices.Sorted(maps.Keys(given)) {
		if _, ok := s.Properties[k]; !ok {
			strange = append(strange, k)
		}
	}
	if len(strange) == 0 || len(s.Properties) == 0 {
		return ""
	}
	return safe.Line("; it has no argument " + strings.Join(strange, ", ") + "; its arguments are " + strings.Join(slices.Sorted(maps.Keys(s.Properties)), ", "))
}

func problemWords(problems []form.Problem) string {
	out := make([]string, len(problems))
	for i, p := range problems {
		out[i] = p.String()
	}
	return safe.Line(strings.Join(out, "; "))
}

// start makes the call; with wait it sees the task through. A call may ask
// before it answers, so questions are served meanwhile.
func (s *session) start(ctx context.Context, req monitor.StartRequest, wait bool) error {
	rep, err := beside(ctx, s, nil, req.Server, func(ctx context.Context) (monitor.StartReply, error) { return s.m.Start(ctx, req) })
	if err != nil {
		e := classify(err, req.Server)
		if errors.Is(err, mcp.ErrUnsupported) && !req.Plain {
			e.Message += "; --plain calls it without one"
		}
		return e
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
