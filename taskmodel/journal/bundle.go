package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"mcptasks/taskmodel"
)

// BundleOptions say what goes into a bundle beside what the journal knows.
type BundleOptions struct {
	Task    *taskmodel.Task // as it stands now; nil: as the journal has it
	Wire    []taskmodel.WireEntry
	KeepIDs bool     // an id alone can give access to its task: by default they are replaced
	Secrets []string // words that must not appear: tokens and header values of the configuration
}

// A bundle is what a bug report about one task needs.
type bundle struct {
	Bundle      string               `json:"bundle"`
	Version     int                  `json:"version"`
	Server      string               `json:"server"`
	TaskID      string               `json:"taskId"`
	Generation  taskmodel.Generation `json:"generation"`
	Request     bundleRequest        `json:"request"`
	Task        bundleTask           `json:"task"`
	Transitions []bundleStep         `json:"transitions"`
	Questions   []bundleQuestion     `json:"questions,omitempty"`
	Result      json.RawMessage      `json:"result,omitempty"`
	Error       *taskmodel.RPCError  `json:"error,omitempty"`
	ResultNote  string               `json:"resultNote,omitempty"`
	History     []HistoryRow         `json:"history,omitempty"`
	Wire        []bundleWire         `json:"wire,omitempty"`
	Removed     map[string]int       `json:"removed"`
}

type bundleRequest struct {
	Tool      string          `json:"tool,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	TTLMs     int64           `json:"ttlMs,omitempty"`
}

type bundleTask struct {
	Status        taskmodel.Status   `json:"status"`
	StatusMessage string             `json:"statusMessage,omitempty"`
	Standing      taskmodel.Standing `json:"standing,omitempty"`
	Note          string             `json:"note,omitempty"`
	CreatedAt     *time.Time         `json:"createdAt,omitempty"`
	FirstHeardAt  *time.Time         `json:"firstHeardAt,omitempty"`
	EndedAt       *time.Time         `json:"endedAt,omitempty"`
	Polls         int                `json:"polls"`
	Pushes        int                `json:"pushes"`
	Lenient       []string           `json:"readAgainstTheSchema,omitempty"`
	Raw           json.RawMessage    `json:"raw,omitempty"`
}

type bundleStep struct {
	Time    time.Time        `json:"time"`
	Status  taskmodel.Status `json:"status"`
	Message string           `json:"message,omitempty"`
	Note    string           `json:"note,omitempty"`
}

type bundleQuestion struct {
	Kind    taskmodel.QuestionKind  `json:"kind"`
	State   taskmodel.QuestionState `json:"state"`
	Key     string                  `json:"key,omitempty"`
	Message string                  `json:"message,omitempty"`
	Schema  json.RawMessage         `json:"schema,omitempty"`
	Refusal string                  `json:"refusal,omitempty"`
}

type bundleWire struct {
	Time      time.Time           `json:"time"`
	Direction taskmodel.Direction `json:"direction"`
	Kind      string              `json:"kind"`
	Method    string              `json:"method,omitempty"`
	Message   json.RawMessage     `json:"message,omitempty"`
	Fault     string              `json:"fault,omitempty"`
}

// Bundle gives a task with its request, transitions, questions, result and
// wire messages as one indented JSON value to attach to a bug report. Secrets
// are removed: what looks like a token, what stands under a name like one, what
// a person answered, and task ids unless they are asked for.
func (j *Journal) Bundle(ctx context.Context, target string, k taskmodel.Key, o BundleOptions) ([]byte, error) {
	t := o.Task
	if t == nil {
		r, err := j.Restore(ctx, target)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(r.Tasks, func(t taskmodel.Task) bool { return t.ID == k.ID && t.Role == k.Role })
		if i < 0 {
			return nil, fmt.Errorf("the journal does not know %s", k)
		}
		t = &r.Tasks[i]
	}
	b := bundle{Bundle: "mcptasks task", Version: 1, Server: k.Server, TaskID: k.ID, Generation: t.Generation,
		Request: bundleRequest{Tool: t.Tool, Arguments: whole(t.Args), TTLMs: t.AskedTTL.Duration.Milliseconds()},
		Task: bundleTask{Status: t.Status, StatusMessage: t.StatusMessage, Standing: t.Standing, Note: t.Note,
			CreatedAt: some(t.CreatedAt), FirstHeardAt: some(t.FirstHeardAt), EndedAt: some(t.EndedAt),
			Polls: t.Polls, Pushes: t.Pushes, Lenient: t.Lenient, Raw: whole(t.Raw)},
		Removed: map[string]int{}}
	for _, s := range t.Transitions {
		b.Transitions = append(b.Transitions, bundleStep{s.At, s.Status, s.Message, s.Note})
	}
	if err := j.bundleRest(ctx, target, k, t, &b); err != nil {
		return nil, fmt.Errorf("bundling %s: %w", k, err)
	}
	for _, e := range o.Wire {
		b.Wire = append(b.Wire, bundleWire{e.At, e.Direction, e.Kind, e.Method, whole(e.Bytes), e.Fault})
	}
	return clean(b, t, o)
}

func some(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func (j *Journal) bundleRest(ctx context.Context, target string, k taskmodel.Key, t *taskmodel.Task, b *bundle) error {
	out := t.Outcome
	if out.Result == nil && out.Err == nil {
		kept, ok, err := j.Outcome(ctx, target, k.ID, k.Role)
		if err != nil {
			return err
		}
		if ok {
			out = kept
		}
	}
	b.Result, b.Error, b.ResultNote = whole(out.Result), out.Err, out.Note
	rows, err := j.read.QueryContext(ctx, `SELECT doc FROM questions WHERE server = (SELECT id FROM servers WHERE target = ?)
		AND role = ? AND task = ? ORDER BY asked`, target, roleNumber(k.Role), k.ID)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var doc []byte
		if err := rows.Scan(&doc); err != nil {
			return err
		}
		var q taskmodel.Question
		if err := json.Unmarshal(doc, &q); err != nil {
			return err
		}
		b.Questions = append(b.Questions, bundleQuestion{q.Kind, q.State, q.Key, q.Message, whole(q.Schema), q.Refusal})
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return j.History(ctx, HistoryQuery{Target: target, TaskID: k.ID, Role: k.Role}, func(r HistoryRow) error {
		b.History = append(b.History, r)
		return nil
	})
}

var (
	secretName = regexp.MustCompile(`(?i)(authorization|token|password|passwd|secret|api[-_]?key|cookie|credential|session[-_]?id|private[-_]?key|signature)`)
	// publicName are names of the protocol that only look like secrets.
	publicName = regexp.MustCompile(`(?i)^(progressToken|maxTokens|max_tokens|nextToken|requestState)$`)
	secretText = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[a-z0-9._~+/=-]{8,}|\beyJ[\w-]{8,}\.[\w-]+(\.[\w-]+)?|\b(sk|pk|rk|ghp|gho|ghs|github_pat|glpat|xox[abps])[-_][\w-]{12,}|\bAKIA[0-9A-Z]{12,}|://[^/\s:@"]+:[^/\s@"]+@|[?&](token|key|secret|password|access_token|code|sig|signature)=[^&\s"]+`)
)

const removed = "(removed)"

// clean removes secrets from a bundle and writes it.
func clean(b bundle, t *taskmodel.Task, o BundleOptions) ([]byte, error) {
	raw, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("writing the bundle: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("writing the bundle: %w", err)
	}
	c := cleaner{counts: map[string]int{}, secrets: o.Secrets}
	if !o.KeepIDs {
		ids := []string{t.ID, t.ParentID}
		for _, child := range t.Children {
			ids = append(ids, child.ID)
		}
		for _, e := range o.Wire {
			ids = append(ids, e.Task)
		}
		for _, id := range ids {
			if id != "" && !slices.Contains(c.ids, id) {
				c.ids = append(c.ids, id)
			}
		}
	}
	v = c.value("", v)
	top, _ := v.(map[string]any)
	top["removed"] = c.counts
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(top); err != nil {
		return nil, fmt.Errorf("writing the bundle: %w", err)
	}
	return out.Bytes(), nil
}

// A cleaner walks a JSON value and takes out what must not be seen.
type cleaner struct {
	ids     []string
	secrets []string
	counts  map[string]int
}

func (c *cleaner) value(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		_, answer := v["action"].(string)
		if _, ok := v["role"].(string); ok && !answer { // a completion that a person wrote
			_, answer = v["model"].(string)
		}
		for k, in := range v {
			if k == "content" && answer { // what a person typed
				v[k] = c.blank(in)
				c.counts["answers"]++
				continue
			}
			v[k] = c.value(k, in)
		}
		// Names of fields may be ids, too.
		for k, in := range v {
			if n := c.text(k); n != k {
				delete(v, k)
				v[n] = in
			}
		}
		return v
	case []any:
		for i, in := range v {
			v[i] = c.value(name, in)
		}
		return v
	case string:
		if v != "" && secretName.MatchString(name) && !publicName.MatchString(name) {
			c.counts["secrets"]++
			return removed
		}
		return c.text(v)
	case json.Number:
		if secretName.MatchString(name) && !publicName.MatchString(name) {
			c.counts["secrets"]++
			return removed
		}
		return v
	}
	return v
}

// blank keeps the names of what was answered alone.
func (c *cleaner) blank(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return removed
	}
	for k := range m {
		m[k] = removed
	}
	return m
}

func (c *cleaner) text(s string) string {
	for _, secret := range c.secrets {
		if secret != "" && strings.Contains(s, secret) {
			c.counts["secrets"]++
			s = strings.ReplaceAll(s, secret, removed)
		}
	}
	if secretText.MatchString(s) {
		c.counts["secrets"]++
		s = secretText.ReplaceAllStringFunc(s, func(m string) string {
			switch {
			case strings.HasPrefix(m, "://"):
				return "://" + removed + "@"
			case m[0] == '?' || m[0] == '&':
				return m[:strings.IndexByte(m, '=')+1] + removed
			}
			return removed
		})
	}
	for i, id := range c.ids {
		if !containsID(s, id) {
			continue
		}
		c.counts["taskIds"]++
		s = replaceID(s, id, fmt.Sprintf("task-%d", i+1))
	}
	return s
}

// An id as short as "1" stands in many texts that do not mean it; it is
// replaced only where it is the whole text or has no letter or digit beside it.
func containsID(s, id string) bool { return replaceID(s, id, "") != s }

func replaceID(s, id, with string) string {
	if len(id) >= 8 {
		return strings.ReplaceAll(s, id, with)
	}
	var b strings.Builder
	for {
		i := strings.Index(s, id)
		if i < 0 {
			return b.String() + s
		}
		end := i + len(id)
		if i > 0 && wordByte(s[i-1]) || end < len(s) && wordByte(s[end]) {
			b.WriteString(s[:end])
		} else {
			b.WriteString(s[:i] + with)
		}
		s = s[end:]
	}
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
