package cli

import (
	"bytes"
	"encoding/json"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
)

// taskJSON is a task as the contract has it. Fields that are not known are
// left out; ttlMs is null for unlimited.
type taskJSON struct {
	Server          string          `json:"server"`
	TaskID          string          `json:"taskId"`
	Role            string          `json:"role"`
	Generation      string          `json:"generation"`
	Status          string          `json:"status"`
	StatusMessage   string          `json:"statusMessage,omitempty"`
	Tool            string          `json:"tool,omitempty"`
	Arguments       json.RawMessage `json:"arguments,omitempty"`
	Owner           string          `json:"owner,omitempty"`
	ParentTaskID    string          `json:"parentTaskId,omitempty"`
	CreatedAt       string          `json:"createdAt,omitempty"`
	FirstHeardAt    string          `json:"firstHeardAt"`
	LastUpdatedAt   string          `json:"lastUpdatedAt,omitempty"`
	TTL             json.RawMessage `json:"ttlMs,omitempty"`
	KeepAlive       json.RawMessage `json:"keepAliveMs,omitempty"`
	PollIntervalMs  int64           `json:"pollIntervalMs,omitempty"`
	Standing        string          `json:"standing"`
	Note            string          `json:"note,omitempty"`
	CancelRequested bool            `json:"cancelRequested"`
	Progress        *progressJSON   `json:"progress,omitempty"`
	Inputs          []inputJSON     `json:"inputs"`
	HasResult       bool            `json:"hasResult"`
}

type progressJSON struct {
	Progress float64  `json:"progress"`
	Total    *float64 `json:"total,omitempty"`
	Message  string   `json:"message,omitempty"`
}

type inputJSON struct {
	Key      string          `json:"key"`
	Kind     string          `json:"kind"`
	Message  string          `json:"message"`
	Answered bool            `json:"answered"`
	State    string          `json:"state,omitempty"`
	Schema   json.RawMessage `json:"schema,omitempty"`
	URL      string          `json:"url,omitempty"`
	Params   json.RawMessage `json:"params,omitempty"`
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// shapeTask makes a task's JSON. With full, inputs carry their schema or URL.
func shapeTask(t taskmodel.Task, v *board.Version, full bool) taskJSON {
	j := taskJSON{
		Server: t.Server, TaskID: t.ID, Role: string(t.Role), Generation: string(t.Generation), Status: string(t.Status),
		StatusMessage: t.StatusMessage, Tool: t.Tool, Owner: t.Owner, ParentTaskID: t.ParentID, CreatedAt: stamp(t.CreatedAt),
		FirstHeardAt: stamp(t.FirstHeardAt), LastUpdatedAt: stamp(t.LastUpdatedAt), PollIntervalMs: t.PollInterval.Milliseconds(),
		Standing: string(t.Standing), Note: t.Note, CancelRequested: !t.CancelRequested.IsZero(), Inputs: []inputJSON{},
		HasResult: !t.Outcome.IsZero(),
	}
	if full {
		j.Arguments = compact(t.Args)
	}
	if j.Note == "" {
		j.Note = t.CancelNote
	}
	if ttl := shapeTTL(t.TTL); ttl != nil {
		if t.Generation == taskmodel.GenDraft {
			j.KeepAlive = ttl
		} else {
			j.TTL = ttl
		}
	}
	if p := t.Progress; p != nil {
		j.Progress = &progressJSON{Progress: p.Value, Message: p.Message}
		if p.HasTotal {
			total := p.Total
			j.Progress.Total = &total
		}
	}
	for _, id := range t.Inputs {
		if q, ok := v.Question(id); ok && q.State != taskmodel.QuestionWithdrawn {
			j.Inputs = append(j.Inputs, shapeInput(q, full))
		}
	}
	return j
}

// TaskJSON is a task as `get -o json` prints it.
func TaskJSON(t taskmodel.Task, v *board.Version) json.RawMessage {
	b, err := json.Marshal(shapeTask(t, v, true))
	if err != nil {
		return nil // a raw part that is no JSON was made a string: there is nothing left to fail
	}
	return b
}

func shapeTTL(t taskmodel.TTL) json.RawMessage {
	switch {
	case !t.Known:
		return nil
	case t.Unlimited:
		return json.RawMessage("null")
	}
	b, _ := json.Marshal(t.Duration.Milliseconds())
	return b
}

func shapeInput(q taskmodel.Question, full bool) inputJSON {
	in := inputJSON{Key: q.Key, Kind: string(q.Kind), Message: q.Message, Answered: !q.State.Open()}
	if q.State != taskmodel.QuestionOpen {
		in.State = string(q.State)
	}
	if full {
		in.Schema, in.URL = compact(q.Schema), q.URL
		if q.Kind == taskmodel.AskSampling || q.Kind == taskmodel.AskUnsupported {
			in.Params = compact(q.Params)
		}
	}
	return in
}

// compact keeps raw JSON on one line; what is no JSON becomes a string.
func compact(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		s, _ := json.Marshal(string(raw))
		return s
	}
	return b.Bytes()
}

// outcomeJSON is what `result` prints: the payload untouched.
type outcomeJSON struct {
	Server string          `json:"server"`
	TaskID string          `json:"taskId,omitempty"`
	Task   *taskJSON       `json:"task,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
	Note   string          `json:"note,omitempty"`
}

func shapeOutcome(k taskmodel.Key, server string, o taskmodel.Outcome) outcomeJSON {
	j := outcomeJSON{Server: server, TaskID: k.ID, Result: compact(o.Result), Note: o.Note}
	if o.Err != nil {
		j.Result = nil
		j.Error, _ = json.Marshal(o.Err)
	}
	return j
}

// toolFailed reports whether a result is a tool's own error (isError).
func toolFailed(o taskmodel.Outcome) bool {
	if o.Err != nil {
		return true
	}
	var r struct {
		IsError bool `json:"isError"`
	}
	return json.Unmarshal(o.Result, &r) == nil && r.IsError
}

type serverJSON struct {
	Name            string         `json:"name"`
	Target          string         `json:"target"`
	Transport       string         `json:"transport"`
	State           string         `json:"state"`
	Generation      string         `json:"generation,omitempty"`
	ProtocolVersion string         `json:"protocolVersion,omitempty"`
	Can             canJSON        `json:"can"`
	Tasks           map[string]int `json:"tasks"`
	Error           string         `json:"error,omitempty"`
	HeldBy          string         `json:"heldBy,omitempty"`
	Incomplete      string         `json:"incomplete,omitempty"`
	Warning         string         `json:"warning,omitempty"`
}

type canJSON struct {
	List   bool `json:"list"`
	Cancel bool `json:"cancel"`
	Start  bool `json:"start"`
	Push   bool `json:"push"`
}

func shapeServer(s taskmodel.Server, counts board.Counts) serverJSON {
	j := serverJSON{
		Name: s.Name, Target: s.Target, Transport: s.Transport, State: string(s.State), Generation: string(s.Generation),
		ProtocolVersion: s.ProtocolVersion, Can: canJSON{s.Can.List, s.Can.Cancel, s.Can.Start, s.Can.Push},
		Tasks: map[string]int{}, Error: s.Error, HeldBy: s.HeldBy, Incomplete: s.ListIncomplete, Warning: s.Warning,
	}
	for st, n := range counts.ByServer[s.Name] {
		if n > 0 {
			j.Tasks[string(st)] = n
		}
	}
	return j
}

type toolJSON struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	TaskSupport string          `json:"taskSupport"`
	WhyNotTask  string          `json:"whyNotTask,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

func shapeTool(t taskmodel.Tool) toolJSON {
	in := compact(t.InputSchema)
	if in == nil {
		in = json.RawMessage("{}")
	}
	return toolJSON{t.Name, t.Title, t.Description, t.TaskSupport, t.WhyNotTask, in}
}

type historyJSON struct {
	Time   string          `json:"time"`
	Server string          `json:"server"`
	TaskID string          `json:"taskId,omitempty"`
	Event  string          `json:"event"`
	Detail json.RawMessage `json:"detail"`
}

func shapeHistory(e taskmodel.Event) historyJSON {
	d := compact(e.Detail)
	if d == nil {
		d = json.RawMessage("{}")
		if e.Message != "" {
			d, _ = json.Marshal(map[string]string{"message": e.Message})
		}
	}
	server := e.Server
	if server == "" {
		server = e.Task.Server
	}
	return historyJSON{stamp(e.Time), server, e.Task.ID, string(e.Kind), d}
}
