package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"mcptasks/taskmodel"
)

// Words of Tool.TaskSupport.
const (
	supportRequired  = "required"
	supportOptional  = "optional"
	supportForbidden = "forbidden"
	supportServer    = "server" // only a call tells (extension, draft)
)

// What bounds a tools/list that never ends: pages in all, and pages in a row
// without a new tool.
const (
	maxToolPages  = 1000
	maxToolBarren = 50
)

// toolCache remembers the tools as they were last listed: the rules of a call
// depend on its tool's execution.taskSupport.
type toolCache struct {
	mu     sync.Mutex
	known  bool
	byName map[string]taskmodel.Tool
}

// tool finds a tool that has been listed; known is false when none have been.
func (c *toolCache) tool(name string) (t taskmodel.Tool, found, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, found = c.byName[name]
	return t, found, c.known
}

func (c *toolCache) put(tools []taskmodel.Tool) {
	m := make(map[string]taskmodel.Tool, len(tools))
	for _, t := range tools {
		m[t.Name] = t
	}
	c.mu.Lock()
	c.byName, c.known = m, true
	c.mu.Unlock()
}

// forget makes the next call that needs to know list the tools again.
func (c *toolCache) forget() {
	c.mu.Lock()
	c.known = false
	c.mu.Unlock()
}

// listTools fetches all pages of tools/list, each tool once. Cursors are opaque;
// one that repeats ends the listing, since a server that loops would never end
// it, and so do pages without anything new; the server's log says so. In the
// modern era dropInvalid removes tools that may not be used; it is nil elsewhere.
func (s *session) listTools(ctx context.Context, dropInvalid func(taskmodel.Tool) bool) ([]taskmodel.Tool, error) {
	var tools []taskmodel.Tool
	seen, have := map[string]bool{}, map[string]bool{}
	cursor, barren := "", 0
	for pages := 1; ; pages++ {
		p := map[string]any{}
		if cursor != "" {
			p["cursor"] = cursor
		}
		params, header := s.modernParams(p, false)
		b, err := s.call(ctx, "tools/list", params, "", header)
		if err != nil {
			return nil, err
		}
		list, fresh := member(b, "tools"), false
		if !isArray(list) {
			return nil, s.wrap("listing the tools", fmt.Errorf("the answer has no list of tools: %s", clip(b)))
		}
		elements(list, func(v json.RawMessage) bool {
			t := s.readTool(v)
			if t.Name == "" || have[t.Name] {
				return true
			}
			have[t.Name], fresh = true, true
			if dropInvalid == nil || !dropInvalid(t) {
				tools = append(tools, t)
			}
			return true
		})
		if barren++; fresh {
			barren = 0
		}
		next, cut := nextCursor(member(b, "nextCursor"))
		switch {
		case next == "":
		case seen[next]:
			cut = "the server repeats its cursors"
		case barren == maxToolBarren:
			cut = fmt.Sprintf("the server sent %d pages without a new tool", barren)
		case pages == maxToolPages:
			cut = fmt.Sprintf("there are more than %d pages", pages)
		default:
			seen[next], cursor = true, next
			continue
		}
		if cut != "" {
			s.handler().Log(taskmodel.LogLine{At: time.Now(), Level: "warning", Logger: "mcptasks", Text: "the list of tools is incomplete: " + cut})
		}
		s.tools.put(tools)
		return tools, nil
	}
}

// readTool reads one tool of tools/list.
func (s *session) readTool(raw json.RawMessage) taskmodel.Tool {
	t := taskmodel.Tool{
		Server: s.server(), Name: stringAt(raw, "name"), Title: stringAt(raw, "title"),
		Description: stringAt(raw, "description"), InputSchema: member(raw, "inputSchema"),
		OutputSchema: member(raw, "outputSchema"), Raw: raw,
	}
	hints := member(raw, "annotations")
	if t.Title == "" {
		t.Title = stringAt(hints, "title")
	}
	t.ReadOnly = string(member(hints, "readOnlyHint")) == "true"
	// destructiveHint is true unless the tool says otherwise or only reads
	// (schema, ToolAnnotations).
	t.Destructive = isObject(hints) && !t.ReadOnly && string(member(hints, "destructiveHint")) != "false"
	s.taskSupport(&t)
	return t
}

// taskSupport fills in whether the tool can run as a task here and, if not,
// why, in words (2025-11-25 tasks, "Tool-Level Negotiation").
func (s *session) taskSupport(t *taskmodel.Tool) {
	info := s.getInfo()
	declared := stringAt(t.Raw, "execution", "taskSupport")
	switch info.Generation {
	case taskmodel.GenCore:
		t.TaskSupport = declared
		switch {
		case declared != supportRequired && declared != supportOptional:
			t.TaskSupport = supportForbidden
			t.WhyNotTask = "the tool does not offer it (execution.taskSupport is " + orAbsent(declared) + ")"
		case !info.Can.Start:
			t.WhyNotTask = info.Can.StartWhy
		}
	case taskmodel.GenDraft, taskmodel.GenExtension:
		t.TaskSupport = supportServer
		if !info.Can.Start {
			t.WhyNotTask = info.Can.StartWhy
		}
	default:
		t.TaskSupport = supportForbidden
		t.WhyNotTask = info.Can.StartWhy
		if t.WhyNotTask == "" {
			t.WhyNotTask = "this server has no tasks"
		}
	}
}

func orAbsent(s string) string {
	if s == "" {
		return "absent"
	}
	return s
}
