package setup

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mcptasks/mcp/config"
	"mcptasks/mcp/transport/signin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func asking(name, source string, ids ...string) config.Server {
	s := config.Server{Name: name, Source: source, Client: "vscode", Entry: config.ServerEntry{Command: "run", Env: map[string]string{}}}
	for _, id := range ids {
		s.Inputs = append(s.Inputs, config.Input{ID: id})
		s.Entry.Env[id] = "${input:" + id + "}"
	}
	return s
}

func TestInputsAreAskedForOnceAndOnlyForWhatIsStarted(t *testing.T) {
	var asked []string
	ask := func(s config.Server, in config.Input) (string, error) {
		asked = append(asked, s.Name+"."+in.ID)
		return "v-" + in.ID, nil
	}
	env := func(k string) string { return map[string]string{"MCPTASKS_INPUT_e": "from-env"}[k] }
	servers := []config.Server{asking("a", "f", "k", "e"), asking("b", "f", "k"), asking("c", "g", "k"), asking("idle", "f", "z")}
	kept := &ring{m: map[string]string{}}
	in := Inputs{Getenv: env, Ask: ask, Keep: kept}
	got, err := in.Fill(servers, []string{"a", "b", "c"})
	if err != nil {
		t.Fatal(err)
	}
	if s := strings.Join(asked, " "); s != "a.k c.k" {
		t.Errorf("asked for %q", s)
	}
	if got[0].Entry.Env["e"] != "from-env" || got[1].Entry.Env["k"] != "v-k" || len(got[1].Inputs) != 0 || len(got[3].Inputs) != 1 {
		t.Errorf("got %+v", got)
	}
	if servers[0].Entry.Env["k"] != "${input:k}" {
		t.Error("the servers given were changed")
	}
	if s := Spec(got[3], Options{}); !strings.Contains(s.Disabled, "z") || !strings.Contains(s.Disabled, "MCPTASKS_INPUT_z") || !strings.Contains(s.Disabled, "mcptasks idle") {
		t.Errorf("a server without its input: %q does not say what to do", s.Disabled)
	}
	in.Ask = func(config.Server, config.Input) (string, error) { return "", errors.New("gone") }
	if got, err := in.Fill(servers, []string{"a"}); err != nil || got[0].Entry.Env["k"] != "v-k" || len(kept.m) != 2 {
		t.Errorf("a later run does not take what the keyring has: %v, %q", err, kept.m)
	}
	if !forgetInputs(servers[0], kept) || forgetInputs(servers[0], kept) || len(kept.m) != 1 {
		t.Errorf("after signing out %q is kept", kept.m)
	}
	for _, keep := range []signin.Store{kept, nil} {
		in.Keep = keep
		if _, err := in.Fill(servers, []string{"a"}); err == nil {
			t.Error("the end of asking is no error")
		}
	}
	// A keyring that cannot be used is no reason not to go on.
	in = Inputs{Getenv: env, Ask: ask, Keep: &ring{err: errors.New("locked")}}
	if got, err := in.Fill(servers, []string{"a"}); err != nil || got[0].Entry.Env["k"] != "v-k" {
		t.Errorf("without a keyring: %v", err)
	}
}

// Where a file says what there is to choose from, nothing else is taken.
func TestInputsToChooseFrom(t *testing.T) {
	in := config.Input{ID: "where", Description: "Region", Options: []string{"eu", "us"}, Default: "eu"}
	if got, want := InputPrompt(config.Server{Name: "ci"}, in), "ci asks for where (Region), one of eu, us [eu]: "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s := asking("a", "f", "where")
	s.Inputs = []config.Input{in}
	for given, fault := range map[string]string{"us": "", "moon": `asking for where: "moon" is none of eu, us`} {
		fill := Inputs{Getenv: func(string) string { return "" }, Ask: func(config.Server, config.Input) (string, error) { return given, nil }}
		if _, err := fill.Fill([]config.Server{s}, []string{"a"}); (err == nil) != (fault == "") || err != nil && err.Error() != fault {
			t.Errorf("%s: %v", given, err)
		}
	}
}

// ring is a keyring in memory.
type ring struct {
	m   map[string]string
	err error
}

func (r *ring) Load(k string) (string, error) {
	if v, ok := r.m[k]; ok {
		return v, nil
	}
	return "", signin.ErrNoSecret
}

func (r *ring) Save(k, v string) error {
	if r.err == nil {
		r.m[k] = v
	}
	return r.err
}

func (r *ring) Delete(k string) error { delete(r.m, k); return r.err }

func TestSamplingCommand(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh")
	}
	server := func(script string) config.Server {
		return config.Server{Name: "ci", Entry: config.ServerEntry{SamplingCommand: []string{sh, "-c", script}}}
	}
	for _, tt := range []struct{ name, script, want, fault string }{
		{"echo", "cat", `{"messages":[]}`, ""},
		{"fails", "echo no model >&2; exit 3", "", "no model"},
		{"too much", "yes", "", "more than"},
		{"does not read", "exec 0<&-; echo ok", "ok", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Sampling([]config.Server{server(tt.script)})(t.Context(), "ci", []byte(`{"messages":[]}`))
			if got != tt.want || (err == nil) != (tt.fault == "") || err != nil && !strings.Contains(err.Error(), tt.fault) {
				t.Errorf("%q, %v; want %q, %q", got, err, tt.want, tt.fault)
			}
		})
	}
	if got, err := Sampling(nil)(t.Context(), "ci", nil); got != "" || err != nil {
		t.Errorf("without a command: %q %v", got, err)
	}
}

// A command that is given up keeps nobody waiting, though what it started holds
// its output open.
func TestSamplingCommandIsGivenUp(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh")
	}
	dir := t.TempDir()
	mark := dir + "/alive"
	s := config.Server{Name: "ci", Entry: config.ServerEntry{SamplingCommand: []string{sh, "-c", "(echo x >" + mark + "; sleep 600; echo y >>" + mark + ") & wait"}}}
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		for {
			if _, err := os.Stat(mark); err == nil {
				cancel(errors.New("enough"))
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	start := time.Now()
	if _, err := Sampling([]config.Server{s})(ctx, "ci", nil); err == nil || err.Error() != "enough" {
		t.Errorf("err = %v", err)
	}
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("ended after %s", d)
	}
}
