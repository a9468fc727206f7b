package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/form"
	"mcptasks/ui/resultview/blocks"
	"mcptasks/ui/safe"
)

// A terminal asks on stderr and reads stdin line by line, so that stdout
// carries only the answer. It lasts for one question.
type terminal struct {
	out    io.Writer
	schema form.Limits // of what a form asks for
	read   func() (string, error)
	secret func(prompt string) (string, error) // what is typed does not show; nil: it does
}

func (t *terminal) say(format string, args ...any) { fmt.Fprintf(t.out, format+"\n", args...) }

// ask reads one line; the end of input puts the question aside.
func (t *terminal) ask(prompt string) (string, error) {
	fmt.Fprint(t.out, prompt)
	return t.aside(t.read())
}

// askSecret reads one line that is not to be seen.
func (t *terminal) askSecret(prompt string) (string, error) {
	if t.secret == nil {
		return t.ask(prompt)
	}
	return t.aside(t.secret(prompt))
}

func (t *terminal) aside(line string, err error) (string, error) {
	if errors.Is(err, io.EOF) {
		fmt.Fprintln(t.out)
		return "", failf("input_needed", "", "put aside; nothing was sent")
	}
	return line, err
}

// askPerson asks one question at the terminal, field by field, until ctx ends.
func (s *session) askPerson(ctx context.Context, q taskmodel.Question) (taskmodel.Answer, error) {
	t := &terminal{out: s.env.Stderr, schema: s.o.Schema, read: func() (string, error) { return s.env.ReadLine(ctx) }}
	if s.env.ReadPassword != nil {
		t.secret = func(prompt string) (string, error) { return s.env.ReadPassword(ctx, prompt) }
	}
	ans := taskmodel.Answer{Question: q.ID}
	who := q.ID.Server
	if q.Task.ID != "" {
		who = q.Task.String()
	}
	t.say("\n%s asks (%s):\n%s\n", safe.Line(who), q.Kind, strings.TrimRight(safe.Text(q.Message), "\n"))
	switch q.Kind {
	case taskmodel.AskURL:
		return t.askURL(q, ans)
	case taskmodel.AskSampling:
		drafted := ""
		if s.o != nil && s.o.Sampling != nil {
			var err error
			if drafted, err = s.o.Sampling(ctx, q.ID.Server, q.Params); err != nil {
				t.say("The sampling_command of %s failed: %s", safe.Line(q.ID.Server), safe.Line(err.Error()))
			}
		}
		return t.askSampling(q, ans, drafted)
	case taskmodel.AskForm:
		return t.askForm(q, ans)
	}
	t.say("mcptasks cannot show this kind of question (%s).", safe.Line(q.Method))
	return t.choose(ans, "d decline, c cancel", "dc")
}

// choose reads what to do with a question: s send, d decline, c cancel; an
// empty line takes the first.
func (t *terminal) choose(ans taskmodel.Answer, words, letters string) (taskmodel.Answer, error) {
	for {
		line, err := t.ask(words + " > ")
		if err != nil {
			return ans, err
		}
		if line == "" {
			line = letters[:1]
		}
		switch c := strings.ToLower(line[:1]); {
		case !strings.Contains(letters, c):
		case c == "s" || c == "o":
			ans.Action = taskmodel.Accept
			return ans, nil
		case c == "d":
			ans.Action = taskmodel.Decline
			return ans, nil
		case c == "c":
			ans.Action = taskmodel.Cancel
			return ans, nil
		case c == "e":
			return ans, nil
		}
		t.say("It is one of: %s.", words)
	}
}

func (t *terminal) askURL(q taskmodel.Question, ans taskmodel.Answer) (taskmodel.Answer, error) {
	v := safe.JudgeURL(q.URL)
	t.say("Host     %s\nAddress  %s", v.Host, v.Full)
	for _, w := range v.Warnings {
		t.say("Mind     %s", w)
	}
	if !v.OK {
		t.say("It is not offered to be opened: %s", v.Why)
		return t.choose(ans, "d decline, c cancel", "dc")
	}
	t.say("Open the address yourself; s tells the server that you agree to visit it.")
	return t.choose(ans, "s agree, d decline, c cancel", "sdc")
}

// askSampling has a person write the completion, or keep the one that a command
// has drafted; "" is no draft.
func (t *terminal) askSampling(q taskmodel.Question, ans taskmodel.Answer, drafted string) (taskmodel.Answer, error) {
	var p struct {
		SystemPrompt string `json:"systemPrompt"`
		MaxTokens    int64  `json:"maxTokens"`
		Messages     []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	_ = json.Unmarshal(q.Params, &p)
	if p.SystemPrompt != "" {
		t.say("system     %s", safe.Text(p.SystemPrompt))
	}
	for _, m := range p.Messages {
		// A message's content is one block or a list of them, as a result's is.
		content := m.Content
		if !strings.HasPrefix(strings.TrimSpace(string(content)), "[") {
			content = json.RawMessage("[" + string(content) + "]")
		}
		for _, c := range blocks.Read(json.RawMessage(`{"content":` + string(content) + "}")).Blocks {
			t.say("%-9s  %s", safe.Line(m.Role), blockText(c))
		}
	}
	if drafted != "" {
		t.say("\nThe sampling_command drafts:\n%s", safe.Text(drafted))
		t.say("\nA line with only a dot keeps the draft; or write another (at most %d tokens), which such a line ends.", p.MaxTokens)
	} else {
		t.say("\nWrite the completion (at most %d tokens); a line with only a dot ends it.", p.MaxTokens)
	}
	var lines []string
	for {
		line, err := t.ask("")
		if err != nil {
			return ans, err
		}
		if line == "." {
			break
		}
		lines = append(lines, line)
	}
	text := strings.Join(lines, "\n")
	if len(lines) == 0 {
		text = drafted
	}
	ans, err := t.choose(ans, "s send, d reject, c cancel", "sdc")
	if err == nil && ans.Action == taskmodel.Accept {
		ans.Content, err = json.Marshal(map[string]any{"role": "assistant", "model": "person", "stopReason": "endTurn",
			"content": map[string]string{"type": "text", "text": text}})
	}
	return ans, err
}

func (t *terminal) askForm(q taskmodel.Question, ans taskmodel.Answer) (taskmodel.Answer, error) {
	f, err := form.Parse(q.Schema, t.schema)
	if err != nil {
		t.say("The form cannot be shown: %v", err)
		return t.choose(ans, "d decline, c cancel", "dc")
	}
	d := f.Start()
	for {
		for i := range f.Fields {
			if err := t.askField(f, &d, i); err != nil {
				return ans, err
			}
		}
		content, err := f.Answer(d)
		if err == nil {
			t.say("\n%s", safe.Text(f.Pretty(unseen(f, d))))
			ans, err := t.choose(ans, "s send, e edit again, d decline, c cancel", "sedc")
			if err != nil || ans.Action != "" {
				if ans.Action == taskmodel.Accept {
					ans.Content = content
				}
				return ans, err
			}
			continue
		}
		t.say("%s", safe.Line(err.Error()))
		ans, cerr := t.choose(ans, "e edit again, d decline, c cancel", "edc")
		if cerr != nil || ans.Action != "" {
			return ans, cerr
		}
	}
}

// unseen is a draft as it may be shown: what is secret is masked.
func unseen(f *form.Form, d form.Draft) form.Draft {
	d.Values = slices.Clone(d.Values)
	for i, fl := range f.Fields {
		if fl.Secret && d.Values[i].Set {
			d.Values[i].Text = "***"
		}
	}
	return d
}

// askField asks for one field until it is right; an empty line keeps what is
// there (a default, or unset).
func (t *terminal) askField(f *form.Form, d *form.Draft, i int) error {
	fl := f.Fields[i]
	title := safe.Line(fl.Title)
	if fl.Required {
		title += " *"
	}
	if fl.Description != "" {
		t.say("  %s", safe.Line(fl.Description))
	}
	for n, o := range fl.Options {
		t.say("  %d  %s", n+1, safe.Line(o.Title))
	}
	hint := fl.Hint()
	switch fl.Kind {
	case form.Choice:
		hint = "a number"
	case form.Multi:
		hint = "numbers, with commas"
	case form.Boolean:
		hint = "y or n"
	}
	if hint != "" {
		title += " (" + safe.Line(hint) + ")"
	}
	if now := shown(fl, d.Values[i]); now != "" {
		title += " [" + now + "]"
	}
	ask := t.ask
	if fl.Secret {
		ask = t.askSecret
	}
	for {
		line, err := ask(title + ": ")
		if err != nil {
			return err
		}
		if line != "" {
			v, err := readValue(fl, line)
			if err != nil {
				t.say("  %v", err)
				continue
			}
			d.Values[i] = v
		}
		bad := false
		for _, p := range f.Problems(*d) {
			if p.Field == i {
				t.say("  %s %s", safe.Line(fl.Title), safe.Line(p.Message))
				bad = true
			}
		}
		if !bad || fl.Unsupported != "" {
			return nil
		}
	}
}

func shown(fl form.Field, v form.Value) string {
	switch {
	case !v.Set:
		return ""
	case fl.Kind == form.Boolean:
		return map[bool]string{true: "y", false: "n"}[v.On]
	case fl.Kind == form.Choice || fl.Kind == form.Multi:
		var out []string
		for _, p := range v.Picked {
			out = append(out, safe.Line(fl.Options[p].Title))
		}
		return strings.Join(out, ", ")
	case fl.Secret:
		return "***"
	}
	return safe.Line(v.Text)
}

func readValue(fl form.Field, line string) (form.Value, error) {
	v := form.Value{Set: true}
	switch fl.Kind {
	case form.Boolean:
		switch strings.ToLower(line) {
		case "y", "yes", "true":
			v.On = true
		case "n", "no", "false":
		default:
			return v, errors.New("it is y or n")
		}
	case form.Choice, form.Multi:
		for part := range strings.SplitSeq(line, ",") {
			n, err := strconv.Atoi(strings.TrimSpace(part))
			if err != nil || n < 1 || n > len(fl.Options) {
				n = 0
				for i, o := range fl.Options {
					if o.Title == strings.TrimSpace(part) {
						n = i + 1
					}
				}
			}
			if n == 0 || fl.Kind == form.Choice && len(v.Picked) == 1 {
				return v, fmt.Errorf("it is a number from 1 to %d", len(fl.Options))
			}
			v.Picked = append(v.Picked, n-1)
		}
	default:
		v.Text = line
	}
	return v, nil
}
