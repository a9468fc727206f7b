package formview

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/form"
	"mcptasks/ui/resultview/blocks"
	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

// samplingSchema are the fields of a completion: what a person writes in a
// model's place.
const samplingSchema = `{"type":"object","required":["text","model","stopReason"],"properties":{
"text":{"type":"string","title":"Completion","minLength":1,"format":"textarea"},
"model":{"type":"string","title":"Model","minLength":1,"default":"human","description":"The name that the server is told."},
"stopReason":{"title":"Stopped because","default":"endTurn","oneOf":[
 {"const":"endTurn","title":"end of the turn"},{"const":"stopSequence","title":"stop sequence"},{"const":"maxTokens","title":"token limit"}]}}}`

// samplingParams are those of sampling/createMessage (2025-11-25, client
// features, sampling).
type samplingParams struct {
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	SystemPrompt     string       `json:"systemPrompt"`
	MaxTokens        *json.Number `json:"maxTokens"`
	Temperature      *json.Number `json:"temperature"`
	StopSequences    []string     `json:"stopSequences"`
	IncludeContext   string       `json:"includeContext"`
	ModelPreferences *struct {
		Hints []struct {
			Name string `json:"name"`
		} `json:"hints"`
		Cost         *json.Number `json:"costPriority"`
		Speed        *json.Number `json:"speedPriority"`
		Intelligence *json.Number `json:"intelligencePriority"`
	} `json:"modelPreferences"`
	Tools []struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	} `json:"tools"`
	ToolChoice json.RawMessage `json:"toolChoice"`
}

// newSampling makes the view of a request for a completion: the conversation
// above, a form for the completion below.
func newSampling(q taskmodel.Question, gen taskmodel.Generation) *Form {
	m := newForm(json.RawMessage(samplingSchema), q.Draft, form.Limits{})
	m.question, m.q, m.gen = true, q, gen
	m.content = completion
	var p samplingParams
	err := json.Unmarshal(q.Params, &p)
	m.head = func(th *theme.Theme, w int) []string {
		if err != nil {
			out := []string{th.Warn.Render(safe.Truncate("! The request cannot be read as the schema has it; it is shown raw.", w, safe.Ellipsis))}
			for _, l := range safe.Lines(pretty(q.Params)) {
				out = append(out, "  "+th.Dim.Render(safe.Truncate(l, max(w-2, 1), safe.Ellipsis)))
			}
			return append(out, "")
		}
		return append(promise(th, q, gen, w), p.lines(th, w)...)
	}
	return m
}

// completion makes the CreateMessageResult of what was written.
func completion(answer json.RawMessage) json.RawMessage {
	var a struct{ Text, Model, StopReason string }
	if json.Unmarshal(answer, &a) != nil {
		return answer // JSON that is not written to the end; the review shows it
	}
	out, err := json.Marshal(struct {
		Role       string            `json:"role"`
		Content    map[string]string `json:"content"`
		Model      string            `json:"model"`
		StopReason string            `json:"stopReason"`
	}{"assistant", map[string]string{"type": "text", "text": a.Text}, a.Model, a.StopReason})
	if err != nil {
		return answer
	}
	return out
}

// promise says what the person does here, and what will be sent.
func promise(th *theme.Theme, q taskmodel.Question, gen taskmodel.Generation, w int) []string {
	lines := []string{"The server wants a completion. You write it in the model's place, as one text.", "Declining " + sends(q, Decline, gen) + "."}
	if mute(q, gen) {
		lines[1] = noWay
	}
	var out []string
	for i, text := range lines {
		s := th.Text
		if i > 0 {
			s = th.Dim
		}
		for _, l := range safe.Wrap(text, max(min(w, 110), 8)) {
			out = append(out, s.Render(l))
		}
	}
	return append(out, "")
}

func (p samplingParams) lines(th *theme.Theme, w int) []string {
	var out []string
	inner := max(min(w, 110)-12, 8)
	add := func(label string, s theme.Style, text string) {
		text = strings.TrimSpace(safe.Text(text))
		if text == "" {
			return
		}
		for i, l := range safe.Wrap(text, inner) {
			if i > 0 {
				label = ""
			}
			out = append(out, th.Heading.Render(safe.Fit(label, 10))+"  "+s.Render(l))
		}
	}
	add("system", th.Dim, p.SystemPrompt)
	for _, m := range p.Messages {
		add(safe.Line(m.Role), th.Text, messageText(m.Content))
	}
	out = append(out, "")
	var limits []string
	if p.MaxTokens != nil {
		limits = append(limits, "at most "+p.MaxTokens.String()+" tokens")
	}
	if p.Temperature != nil {
		limits = append(limits, "temperature "+p.Temperature.String())
	}
	if len(p.StopSequences) > 0 {
		q := make([]string, len(p.StopSequences))
		for i, s := range p.StopSequences {
			q[i] = strconv.Quote(s)
		}
		limits = append(limits, "stops at "+strings.Join(q, ", "))
	}
	if p.IncludeContext != "" && p.IncludeContext != "none" {
		limits = append(limits, "context: "+p.IncludeContext)
	}
	add("limits", th.Dim, strings.Join(limits, "; "))
	if mp := p.ModelPreferences; mp != nil {
		var prefs []string
		for _, h := range mp.Hints {
			if h.Name != "" {
				prefs = append(prefs, h.Name)
			}
		}
		text := strings.Join(prefs, ", then ")
		var weights []string
		for _, x := range []struct {
			name string
			n    *json.Number
		}{{"cost", mp.Cost}, {"speed", mp.Speed}, {"intelligence", mp.Intelligence}} {
			if x.n != nil {
				weights = append(weights, x.name+" "+x.n.String())
			}
		}
		if len(weights) > 0 {
			if text != "" {
				text += "; "
			}
			text += "weighs " + strings.Join(weights, ", ")
		}
		add("prefers", th.Dim, text)
	}
	if len(p.Tools) > 0 {
		var names []string
		for _, t := range p.Tools {
			names = append(names, t.Name)
		}
		add("tools", th.Dim, fmt.Sprintf("%s (a person cannot call them here)", strings.Join(names, ", ")))
	}
	if len(p.ToolChoice) > 0 {
		add("tool use", th.Dim, string(p.ToolChoice))
	}
	if out[len(out)-1] != "" {
		out = append(out, "")
	}
	return out
}

// messageText is the text of a message's content, other blocks a line each.
func messageText(content json.RawMessage) string {
	s := strings.TrimSpace(string(content))
	if !strings.HasPrefix(s, "[") {
		s = "[" + s + "]"
	}
	var out []string
	for _, b := range blocks.Read(json.RawMessage(`{"content":` + s + `}`)).Blocks {
		switch {
		case b.HasText():
			out = append(out, b.Text)
		default:
			line := "[" + b.Kind() + " " + b.MIME + "]"
			if b.HasData() {
				line = "[" + b.Kind() + " " + b.MIME + " " + blocks.Bytes(b.Size) + "]"
			} else if b.Type == "tool_use" || b.Type == "tool_result" {
				line = "[" + b.Kind() + " " + string(b.Raw) + "]"
			}
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}
