package monitor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/form"
)

// What is masked in a message, and that nothing else of it changes.
func TestSecretsInMessages(t *testing.T) {
	var x secrets
	x.add([]form.Member{
		{Name: "pin", Value: json.RawMessage(`"hunter2 <&>"`)}, {Name: "short", Value: json.RawMessage(`"no"`)},
		{Name: "code", Value: json.RawMessage(`4711`)}, {Name: "login", Value: json.RawMessage(`{"word":"sesame-1","n":1}`)},
		{Name: "ümlaut", Value: json.RawMessage(`"geheim \"x\""`)},
	})
	for name, tc := range map[string][2]string{
		"an answer":           {`{"id":1,"result":{"action":"accept","content":{"a":"x","pin":"hunter2 <&>"}}}`, `{"id":1,"result":{"action":"accept","content":{"a":"x","pin":"***"}}}`},
		"escaped":             {`{"pin" : "hunter2 \u003c\u0026\u003e" }`, `{"pin" : "***" }`},
		"a name with escapes": {`{"\u00fcmlaut":"geheim \"x\""}`, `{"\u00fcmlaut":"***"}`},
		"short":               {`{"short":"no","other":"no"}`, `{"short":"***","other":"no"}`},
		"a number":            {`{"id":4711,"code":4711}`, `{"id":4711,"code":"***"}`},
		"another value":       {`{"short":"yes","code":47}`, `{"short":"yes","code":47}`},
		"an object":           {`{"login":{"n":1,"word":"sesame-1"},"z":[1,2]}`, `{"login":"***","z":[1,2]}`},
		"quoted":              {`{"error":{"message":"hunter2 <&> is wrong, as is sesame-1"}}`, `{"error":{"message":"*** is wrong, as is ***"}}`},
		"quoted with escapes": {`{"message":"got hunter2\u0020<&>"}`, `{"message":"got ***"}`},
		"as a name":           {`{"sesame-1":1}`, `{"***":1}`},
		"noise":               {`password: hunter2 <&> "unended`, `password: *** "unended`},
		"nothing in it":       {`{"a":[1.50,"\u00e4",null],"b":"\\"}`, `{"a":[1.50,"\u00e4",null],"b":"\\"}`},
		"broken":              {`{"pin":"hunter`, `{"pin":"hunter`},
		"no value":            {`{"pin":`, `{"pin":`},
	} {
		t.Run(name, func(t *testing.T) {
			in := []byte(tc[0])
			if got := x.message(in); string(got) != tc[1] {
				t.Errorf("%s", got)
			}
			if string(in) != tc[0] {
				t.Errorf("the message itself is now %s", in)
			}
		})
	}
	for i := range 2 * mostSecrets {
		x.add([]form.Member{{Name: fmt.Sprint(i), Value: json.RawMessage(`"again and again"`)}})
	}
	if list, _ := x.all(); len(list) != mostSecrets {
		t.Errorf("%d are kept", len(list))
	}
}

// A password that a person sends, in an answer or among a tool's arguments, is
// to be seen nowhere afterwards: not in the wire log, whatever way the messages
// go, not where the server quotes it in its refusal, not in the journal.
func TestSecretsAreSentAndNotKept(t *testing.T) {
	const schema = `{"type":"object","properties":{"a":{"type":"string"},"pin":{"type":"string","format":"password"}}}`
	const secret, sent = "pin-W3vqS8dUf1", `{"a":"open","pin":"pin-W3vqS8dUf1"}`
	dir := t.TempDir()
	bubble(t, func(t *testing.T) {
		j := openJournal(t, dir, "test")
		f := newFake(taskmodel.GenCore)
		f.input = json.RawMessage(schema)
		r := run(t, with(j), []string{"ci"}, f)
		wire := func(out bool, b string) {
			e := taskmodel.WireEntry{Server: "ci", Direction: taskmodel.Received, Bytes: []byte(b)}
			if out {
				e.Direction = taskmodel.Sent
			}
			f.last().h.Wire(e)
		}
		refusals := 0
		f.hook(func() {
			f.answer = func(_ context.Context, a taskmodel.Answer) error {
				if string(a.Content) != sent {
					t.Errorf("%s was sent", a.Content)
				}
				wire(true, `{"id":9,"result":{"action":"accept","content":`+sent+`}}`)
				if refusals++; refusals == 1 {
					said := secret + " is wrong"
					wire(false, `{"id":9,"error":{"code":-32602,"message":"`+said+`"}}`)
					return fmt.Errorf("ci: answering: %w", &taskmodel.RPCError{Code: -32602, Message: said, Data: json.RawMessage(`"` + said + `"`)})
				}
				return nil
			}
			f.start = func(_ context.Context, c mcp.StartCall) (mcp.Started, error) {
				if string(c.Args) != sent {
					t.Errorf("%s was sent", c.Args)
				}
				wire(true, `{"id":8,"method":"tools/call","params":{"name":"build","arguments":`+sent+`}}`)
				f.put("t1", taskmodel.Working)
				s, err := f.look("t1")
				return mcp.Started{TaskID: "t1", Snapshot: s}, err
			}
		})
		if _, err := r.m.Tools(t.Context(), "ci"); err != nil {
			t.Fatal(err)
		}
		if _, err := r.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "build", Args: json.RawMessage(sent)}); err != nil {
			t.Fatal(err)
		}
		if got := r.task("ci", "t1"); string(got.Args) != `{"a":"open"}` {
			t.Errorf("the arguments are kept as %s", got.Args)
		}
		q := question("q1", "t1")
		q.Schema = json.RawMessage(schema)
		f.last().h.Asked(q)
		r.sleep(1)
		a := accept("q1")
		a.Content = json.RawMessage(sent)
		err := r.m.Answer(t.Context(), a)
		var rpc *taskmodel.RPCError
		if err == nil || !errors.As(err, &rpc) || rpc.Code != -32602 || strings.Contains(fmt.Sprint(err, rpc, string(rpc.Data)), secret) {
			t.Errorf("the refusal says %v (%+v)", err, rpc)
		}
		if got := r.question("q1"); got.State != taskmodel.QuestionRefused || got.Refusal != "*** is wrong" {
			t.Errorf("%s, refused with %q", got.State, got.Refusal)
		}
		r.sleep(resendAfter)
		kept(t, dir, secret) // the answer is still owed
		if err := r.m.Answer(t.Context(), a); err != nil {
			t.Error(err)
		}
		masked := 0
		for _, e := range r.m.Wire(WireFilter{}) {
			if bytes.Contains(e.Bytes, []byte(secret)) {
				t.Errorf("the wire log shows %s", e.Bytes)
			}
			if bytes.Contains(e.Bytes, []byte(`***`)) {
				masked++
			}
			if e.Size < len(`{"id":9,"error"`) {
				t.Errorf("the size of %s is said to be %d", e.Bytes, e.Size)
			}
		}
		if masked != 4 {
			t.Errorf("%d messages with something masked", masked)
		}
		r.end()
		closeJournal(t, j)
	})
	kept(t, dir, secret)
}

// Where a person allows larger forms, what is secret in them is not kept either.
func TestSecretsOfLargeFormsAreNotKept(t *testing.T) {
	var schema strings.Builder
	schema.WriteString(`{"type":"object","properties":{"pin":{"type":"string","format":"password"}`)
	for i := range 250 { // more than the default allows
		fmt.Fprintf(&schema, `,"f%d":{"type":"string"}`, i)
	}
	schema.WriteString("}}")
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		f.input = json.RawMessage(schema.String())
		r := run(t, func(o *Options) { o.Schema.Fields = 300 }, []string{"ci"}, f)
		if _, err := r.m.Tools(t.Context(), "ci"); err != nil {
			t.Fatal(err)
		}
		started, err := r.m.Start(t.Context(), StartRequest{Server: "ci", Tool: "build", Args: json.RawMessage(`{"f1":"x","pin":"1234567"}`)})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.task("ci", started.Key.ID); string(got.Args) != `{"f1":"x"}` {
			t.Errorf("the arguments are kept as %s", got.Args)
		}
	})
}

// kept fails when a text is in a file of a folder.
func kept(t *testing.T, dir, text string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err == nil && bytes.Contains(b, []byte(text)) {
			t.Errorf("%s keeps it", name)
		}
	}
}
