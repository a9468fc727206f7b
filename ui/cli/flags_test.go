package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"mcptasks/taskmodel"
)

// Flags win over variables; -c and -s together over both variables that name
// servers. Each value is told with where it came from.
func TestVariables(t *testing.T) {
	for _, tt := range []struct {
		name, args string
		env        map[string]string
		check      func(g Global) bool
		from       map[string]string
	}{
		{"variables", "config", map[string]string{"MCPTASKS_CONFIG": "a.json\nb.toml\n", "MCPTASKS_SET": "x.y=1", "MCPTASKS_STATE": "/s", "MCPTASKS_READONLY": "true", "MCPTASKS_TIMEOUT": "3s"},
			func(g Global) bool {
				return strings.Join(g.Config, ",") == "a.json,b.toml" && strings.Join(g.Sets, ",") == "x.y=1" && g.State == "/s" && g.Readonly && g.HasLimit && g.Timeout == 3*time.Second
			}, map[string]string{"--state": "MCPTASKS_STATE", "--timeout": "MCPTASKS_TIMEOUT", "--output": "--output", "--log": "default"}},
		{"flags win", "config --state /f --readonly=false", map[string]string{"MCPTASKS_STATE": "/s", "MCPTASKS_READONLY": "true"},
			func(g Global) bool { return g.State == "/f" && !g.Readonly }, map[string]string{"--state": "--state", "--readonly": "--readonly"}},
		{"-s replaces the variable's files", "config -s ci=http://x/", map[string]string{"MCPTASKS_CONFIG": "a.json", "MCPTASKS_SERVER": "b=run"},
			func(g Global) bool { return len(g.Config) == 0 && strings.Join(g.Servers, ",") == "ci=http://x/" }, nil},
		{"NO_COLOR", "config", map[string]string{"NO_COLOR": "1"}, func(g Global) bool { return g.NoColor }, map[string]string{"--no-color": "NO_COLOR"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got Global
			var out, errs bytes.Buffer
			env := Env{Args: append(strings.Fields(tt.args), "-o", "json"), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: func(k string) string { return tt.env[k] }}
			code := Run(t.Context(), env, Deps{Configured: func(g Global) (ConfigReport, error) { got = g; return ConfigReport{State: g.State}, nil }})
			if code != 0 || !tt.check(got) {
				t.Errorf("exit %d, %+v, %s", code, got, errs.String())
			}
			var rep ConfigReport
			if err := json.Unmarshal(out.Bytes(), &rep); err != nil {
				t.Fatal(err)
			}
			for _, v := range rep.Values {
				if want, ok := tt.from[v.Key]; ok && v.From != want {
					t.Errorf("%s is from %q, want %q", v.Key, v.From, want)
				}
			}
		})
	}
	var errs bytes.Buffer
	env := Env{Args: []string{"config"}, Stdout: io.Discard, Stderr: &errs, Getenv: func(k string) string { return map[string]string{"MCPTASKS_TIMEOUT": "soon"}[k] }}
	if code := Run(t.Context(), env, Deps{}); code != exitUsage || !strings.Contains(errs.String(), "MCPTASKS_TIMEOUT") {
		t.Errorf("a bad variable: exit %d, %s", code, errs.String())
	}
}

// A person who is asked can go away: the question ends with the command, not
// with the line. What is secret is not read where it shows.
func TestAskingEndsWithTheCommand(t *testing.T) {
	in, _ := io.Pipe()
	q := taskmodel.Question{Kind: taskmodel.AskForm, Schema: json.RawMessage(`{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}`)}
	s := &session{run: &run{env: Env{Stderr: io.Discard, ReadLine: NewLines(in).Read}}, o: &Opened{}}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := s.askPerson(ctx, q); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	q.Schema = json.RawMessage(`{"type":"object","properties":{"p":{"type":"string","format":"password"}}}`)
	var said bytes.Buffer
	s = &session{run: &run{env: Env{Stderr: &said, ReadLine: NewLines(strings.NewReader("s\n")).Read,
		ReadPassword: func(context.Context, string) (string, error) { return "hunter2", nil }}}, o: &Opened{}}
	a, err := s.askPerson(t.Context(), q)
	if err != nil || string(a.Content) != `{"p":"hunter2"}` || strings.Contains(said.String(), "hunter2") {
		t.Errorf("%+v, %v; said: %s", a, err, said.String())
	}
}
