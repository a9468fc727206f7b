package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/taskmodel"
)

// Servers have the usual time in all; a person in between takes what it takes.
func TestServersHaveTheUsualTimeAndPersonsTheirs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAllowance(usualLimit, false)
		wait := func(d time.Duration) func(context.Context) error {
			return func(ctx context.Context) error {
				select {
				case <-time.After(d):
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
		}
		if err := a.use(t.Context(), wait(20*time.Second)); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour) // the person
		began := time.Now()
		err := a.use(t.Context(), wait(20*time.Second))
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 10*time.Second {
			t.Errorf("after %s: %v", took, err)
		}
		if err := newAllowance(usualLimit, true).use(t.Context(), wait(time.Hour)); err != nil {
			t.Errorf("where --timeout bounds the whole: %v", err)
		}
	})
}

// A configured command drafts, a person approves: a line with only a dot keeps
// the draft, anything else replaces it; a command that fails is told.
func TestSamplingAtTheTerminal(t *testing.T) {
	q := taskmodel.Question{ID: taskmodel.QuestionID{Server: "ci"}, Kind: taskmodel.AskSampling, Params: json.RawMessage(`{"maxTokens":9,"messages":[{"role":"user","content":{"type":"text","text":"why?"}}]}`)}
	for _, tt := range []struct {
		name, typed, draft, want, said string
		err                            error
	}{
		{"draft kept", ".\ns\n", "because", `"because"`, "because", nil},
		{"draft replaced", "no\nidea\n.\ns\n", "because", `"no\nidea"`, "because", nil},
		{"no command", "so\n.\ns\n", "", `"so"`, "Write the completion", nil},
		{"it fails", "so\n.\ns\n", "", `"so"`, "sampling_command of ci failed: exit status 3", errors.New("exit status 3")},
		{"rejected", ".\nd\n", "because", "", "why?", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var said strings.Builder
			s := &session{run: &run{env: Env{Stderr: &said, ReadLine: NewLines(strings.NewReader(tt.typed)).Read}}, o: &Opened{
				Sampling: func(_ context.Context, server string, params []byte) (string, error) {
					if server != "ci" || string(params) != string(q.Params) {
						t.Errorf("drafted for %s: %s", server, params)
					}
					return tt.draft, tt.err
				},
			}}
			a, err := s.askPerson(t.Context(), q)
			if err != nil || tt.want == "" && a.Action != taskmodel.Decline || !strings.Contains(string(a.Content), tt.want) || !strings.Contains(said.String(), tt.said) {
				t.Errorf("%v, %s %s; said: %s", err, a.Action, a.Content, said.String())
			}
		})
	}
	s := &session{run: &run{env: Env{Stderr: io.Discard, ReadLine: NewLines(strings.NewReader("")).Read}}, o: &Opened{}}
	if _, err := s.askPerson(t.Context(), q); classify(err, "").Kind != "input_needed" {
		t.Errorf("at the end of input: %v", err)
	}
}
