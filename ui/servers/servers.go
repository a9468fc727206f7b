// Package servers is the screen of the servers: a table of connections and,
// below or beside it, all that is known of the selected one in words.
//
// It imports kit, act, theme, safe and taskmodel. It does no I/O.
package servers

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"mcptasks/keymap"
	"mcptasks/taskmodel"
	"mcptasks/ui/act"
	"mcptasks/ui/kit"
	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

// A Servers is the screen. It is owned by the root's goroutine.
type Servers struct {
	table kit.Table
	sel   string
	text  kit.Text
	pane  bool // the words have the keys

	edit   kit.Edit
	typing bool   // the filter is being typed
	filter string // words, all of which a server shown has
}

// New makes the screen.
func New() *Servers { return &Servers{} }

// Select turns to a server.
func (s *Servers) Select(name string) { s.sel = name }

// Server is the selected one, for actions that concern a server.
func (s *Servers) Server() string { return s.sel }

// Context implements kit.Screen.
func (s *Servers) Context() keymap.Context {
	if s.Typing() {
		return keymap.Prompt
	}
	return keymap.Servers
}

// Typing implements kit.Typer.
func (s *Servers) Typing() bool { return s.typing || s.text.Search.Typing }

// list are the servers that pass the filter.
func (s *Servers) list(e *kit.Env) []taskmodel.Server {
	all := e.Board.Servers()
	words := strings.Fields(strings.ToLower(s.filter))
	if len(words) == 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(sv taskmodel.Server) bool {
		_, state, _ := e.Theme.OfServer(sv.State)
		text := strings.ToLower(sv.Name + " " + sv.Target + " " + state + " " + string(sv.Generation) + " " + sv.ServerName + " " + sv.Error)
		return slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
	})
}

// typeFilter takes a key for the filter's line.
func (s *Servers) typeFilter(e *kit.Env, m tea.Msg) {
	if k, ok := m.(tea.KeyPressMsg); ok {
		switch {
		case key.Matches(k, e.Keys.Leave.Binding):
			s.typing, s.filter = false, ""
			return
		case key.Matches(k, e.Keys.Accept.Binding):
			s.typing = false
			return
		}
	}
	if s.edit.Update(m) {
		s.filter = s.edit.Text()
	}
}

// Searching reports whether a search is on in the words.
func (s *Servers) Searching() bool { return s.text.Search.Pattern != "" }

func (s *Servers) settle(list []taskmodel.Server) {
	if len(list) == 0 {
		s.sel = ""
		return
	}
	if i := slices.IndexFunc(list, func(x taskmodel.Server) bool { return x.Name == s.sel }); i >= 0 {
		s.table.Cursor = i
		return
	}
	s.table.Cursor = min(s.table.Cursor, len(list)-1)
	s.sel = list[s.table.Cursor].Name
}

// Update implements kit.Screen.
func (s *Servers) Update(e *kit.Env, m tea.Msg) act.Action {
	list := s.list(e)
	s.settle(list)
	if s.typing {
		s.typeFilter(e, m)
		return nil
	}
	if s.text.Search.Typing {
		s.text.Move(e.Keys, m)
		return nil
	}
	k, ok := m.(tea.KeyPressMsg)
	if !ok {
		return nil
	}
	keys := e.Keys
	if key.Matches(k, keys.NextPane.Binding) || key.Matches(k, keys.PrevPane.Binding) {
		s.pane = !s.pane
		return nil
	}
	if s.pane {
		if key.Matches(k, keys.Back.Binding) && s.text.Search.Pattern == "" {
			s.pane = false
			return nil
		}
		if s.text.Move(keys, m) {
			return nil
		}
	} else if s.table.Move(keys, k, len(list)) {
		if len(list) > 0 && s.sel != list[s.table.Cursor].Name {
			s.sel = list[s.table.Cursor].Name
			s.text = kit.Text{}
		}
		return nil
	}
	switch {
	case key.Matches(k, keys.Filter.Binding):
		s.typing = true
		s.edit.Set(s.filter)
		return nil
	case key.Matches(k, keys.Back.Binding) && s.filter != "":
		s.filter = ""
		return nil
	case key.Matches(k, keys.Back.Binding):
		return act.Back{}
	}
	sv, ok := e.Board.Server(s.sel)
	if !ok {
		return nil
	}
	switch {
	case key.Matches(k, keys.Open.Binding):
		return act.Batch{act.Goto{Screen: "tasks"}, act.Filter{Text: "server:" + word(sv.Name)}}
	case key.Matches(k, keys.Connect.Binding), key.Matches(k, keys.Poll.Binding):
		return act.Connect{Server: sv.Name}
	case key.Matches(k, keys.Disconnect.Binding):
		return act.Disconnect{Server: sv.Name}
	case key.Matches(k, keys.SignIn.Binding):
		return act.SignIn{Server: sv.Name}
	case key.Matches(k, keys.LogLevel.Binding):
		return logLevel(sv)
	case key.Matches(k, keys.Roots.Binding):
		return roots(sv)
	case key.Matches(k, keys.Copy.Binding):
		return act.Copy{Text: sv.Target, What: "the server's target"}
	}
	return nil
}

func word(s string) string {
	if strings.ContainsAny(s, " \",") {
		return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"`
	}
	return s
}

// Keys implements kit.Screen.
func (s *Servers) Keys(e *kit.Env) []keymap.Binding {
	k := e.Keys
	if s.Typing() {
		return []keymap.Binding{k.Accept, k.Leave}
	}
	sv, ok := e.Board.Server(s.sel)
	if !ok {
		return []keymap.Binding{k.Filter, k.Tasks, k.Wire, k.Command}
	}
	out := []keymap.Binding{k.Open, k.Connect, k.Disconnect}
	if ok && sv.State == taskmodel.ServerAuth {
		out = append([]keymap.Binding{k.SignIn}, out...)
	}
	return append(out, k.Start, k.Wire, k.LogLevel, k.Roots, k.NextPane, k.Filter)
}

// Status implements kit.Screen.
func (s *Servers) Status(e *kit.Env, w int) (left, right string) {
	th := e.Theme
	if right = s.text.Status(); right != "" && !s.pane {
		right += "  " + e.Keys.NextPane.Label() + " scrolls"
	}
	all := len(e.Board.Servers())
	count := kit.Count(all, "server")
	if s.filter != "" {
		count = fmt.Sprintf("%d of %s", len(s.list(e)), count)
	}
	if s.typing {
		return th.Key.Render("/") + s.edit.View(th, max(w-safe.Width(count)-3, 8)), th.Dim.Render(count)
	}
	left = th.Dim.Render(count)
	if s.filter != "" {
		left += "  " + th.Link.Render(safe.Line(s.filter))
	}
	return left, th.Dim.Render(right)
}

// View implements kit.Screen.
func (s *Servers) View(e *kit.Env, w, h int) string {
	th := e.Theme
	list := s.list(e)
	s.settle(list)
	if len(list) == 0 && s.filter != "" {
		return kit.Fill([]string{"", "  " + th.Text.Render("No server matches the filter."), "  " + th.Dim.Render(e.Keys.Back.Label()+" clears it.")}, h)
	}
	if len(list) == 0 {
		return kit.Fill([]string{"", "  " + th.Text.Render("No servers yet."), "  " + th.Dim.Render("mcptasks config shows which files were looked at.")}, h)
	}
	most := max(h/3, 3)
	if h >= 36 { // there is room for both
		most = h / 2
	}
	th1 := min(len(list), most) + 1
	if h < 12 {
		th1 = h
	}
	out := s.rows(e, list, w, th1)
	if rest := h - th1 - 1; rest > 2 {
		sv := list[s.table.Cursor]
		lines := words(e, sv, w)
		s.text.N = len(lines)
		s.text.Lines = func(i int) []kit.Span { return lines[i] }
		out += "\n\n" + s.text.View(th, w, rest)
	}
	return out
}

func (s *Servers) rows(e *kit.Env, list []taskmodel.Server, w, h int) string {
	th := e.Theme
	nameW, stateW := 6, 12
	for _, sv := range list {
		nameW = min(max(nameW, safe.Width(safe.Line(sv.Name))), 18)
	}
	counts := e.Board.Counts()
	wide := w >= 124
	head := kit.NewLine(w, nil).Gap(2).Cell(th.Heading, "STATE", stateW).Gap(2).Cell(th.Heading, "SERVER", nameW).Gap(2).
		Cell(th.Heading, "TASKS BY", 10).Gap(2).Num(th.Heading, "TASKS", 6).Gap(2).Num(th.Heading, "OPEN", 5)
	if wide {
		head.Gap(2).Num(th.Heading, "RTT", 7).Gap(2).Cell(th.Heading, "", 12).Gap(1).Num(th.Heading, "POLLS/MIN", 9).Gap(2).Num(th.Heading, "PUSHES/MIN", 10)
	}
	head.Gap(2).Add(th.Heading, "SAYS")
	return head.String() + "\n" + s.table.Draw(th, len(list), w, h-1, func(b *kit.Line, i int) {
		sv := list[i]
		g, state, st := th.OfServer(sv.State)
		total, open := 0, 0
		for status, n := range counts.ByServer[sv.Name] {
			total += n
			if !status.Terminal(sv.Generation) {
				open += n
			}
		}
		gen := string(sv.Generation)
		switch {
		case unmet(sv):
			gen = "–"
		case sv.Generation == taskmodel.GenNone:
			gen = "no tasks"
		}
		b.Gap(1).Cell(st, g+" "+state, stateW).Gap(2).Cell(th.Text, safe.Line(sv.Name), nameW).Gap(2).
			Cell(th.Dim, gen, 10).Gap(2).Num(th.Text, kit.Thousands(total), 6).Gap(2).Num(th.Dim, kit.Thousands(open), 5)
		if wide {
			b.Gap(2).Num(th.Text, kit.RTT(sv.RTT), 7).Gap(2).Cell(th.Dim, kit.Sparkline(sv.RTTs, 12), 12).Gap(1).
				Num(th.Dim, kit.Thousands(sv.PollsPerMinute), 9).Gap(2).Num(th.Dim, kit.Thousands(sv.PushesPerMinute), 10)
		}
		b.Gap(2)
		says, style := says(e, sv, b.Left())
		b.Add(style, says)
	})
}

// unmet says that nothing is known of a server yet: not even whether it has
// tasks.
func unmet(sv taskmodel.Server) bool {
	return sv.Generation == taskmodel.GenNone && sv.ProtocolVersion == "" && sv.State != taskmodel.ServerReady
}

// says is the one thing about a server that matters most now, for w cells.
func says(e *kit.Env, sv taskmodel.Server, w int) (string, theme.Style) {
	th := e.Theme
	switch {
	case sv.State == taskmodel.ServerAuth:
		return e.Keys.SignIn.Label() + " signs in", th.Status.Input
	case sv.Error != "" && sv.State != taskmodel.ServerReady:
		retry := ""
		if sv.RetryAt.After(e.Now) {
			retry = "retry in " + e.Left(sv.RetryAt) + ": "
		}
		return retry + kit.Gist(sv.Error, sv.Name, w-safe.Width(retry)), th.Warn
	case sv.HeldBy != "":
		return "held by " + safe.Line(sv.HeldBy), th.Dim
	case sv.Warning != "":
		return safe.Line(sv.Warning), th.Warn
	case sv.PacedUntil.After(e.Now):
		return "asked us to wait " + e.Left(sv.PacedUntil), th.Warn
	case sv.ListIncomplete != "":
		return safe.Line(sv.ListIncomplete), th.Warn
	case sv.Listing:
		return "listing …", th.Dim
	}
	return safe.Line(strings.TrimSpace(sv.ServerName + " " + sv.ServerVersion)), th.Dim
}

// words is all that is known of a server, in sentences.
func words(e *kit.Env, sv taskmodel.Server, w int) [][]kit.Span {
	th := e.Theme
	var out [][]kit.Span
	name := 16
	add := func(label, text string, st theme.Style) {
		if text == "" {
			return
		}
		for i, l := range safe.Wrap(text, max(w-name-2, 20)) {
			if i > 0 {
				label = ""
			}
			out = append(out, []kit.Span{{Style: th.Dim, Text: safe.PadRight(label, name)}, {Style: st, Text: l}})
		}
	}
	out = append(out, []kit.Span{{Style: th.Title, Text: safe.Line(sv.Name)}, {Style: th.Dim, Text: "  " + safe.Line(sv.Target)}}, nil)
	_, state, st := th.OfServer(sv.State)
	since := ""
	if !sv.StateSince.IsZero() {
		since = " for " + e.AgeLong(sv.StateSince)
	}
	add("state", state+since, st)
	if sv.Error != "" {
		add("last error", safe.Text(sv.Error), th.Warn)
	}
	if sv.RetryAt.After(e.Now) {
		add("next try", fmt.Sprintf("in %s, the %s", e.LeftLong(sv.RetryAt), ordinal(sv.Attempts+1)), th.Text)
	}
	add("warning", safe.Text(sv.Warning), th.Warn)
	if sv.HeldBy != "" {
		add("held by", safe.Line(sv.HeldBy)+"; it holds the session, and what you ask for here it carries out", th.Text)
	}
	add("signed in as", safe.Line(sv.Identity), th.Text)
	add("program", safe.Line(strings.TrimSpace(sv.ServerName+" "+sv.ServerVersion)), th.Text)
	proto := sv.ProtocolVersion
	if proto != "" {
		proto = safe.Line(proto) + " over " + safe.Line(sv.Transport)
	} else {
		proto = safe.Line(sv.Transport)
	}
	add("protocol", proto, th.Text)
	if sv.Generation != "" && !unmet(sv) {
		add("tasks", generationWords(sv.Generation), th.Text)
	}
	if sv.Generation != "" && sv.Generation != taskmodel.GenNone && (sv.State == taskmodel.ServerReady || sv.Can != (taskmodel.Can{})) {
		add("lists tasks", can(sv.Can.List, sv.Can.ListWhy), th.Text)
		add("cancels", can(sv.Can.Cancel, sv.Can.CancelWhy), th.Text)
		add("starts", can(sv.Can.Start, sv.Can.StartWhy), th.Text)
		add("pushes", can(sv.Can.Push, sv.Can.PushWhy), th.Text)
	}
	add("listing", safe.Text(sv.ListIncomplete), th.Warn)
	if sv.RTT > 0 {
		add("round trip", strings.TrimSpace(kit.RTT(sv.RTT)+"  "+kit.Sparkline(sv.RTTs, 40)), th.Text)
	}
	add("traffic", fmt.Sprintf("%s polls and %s pushes a minute", kit.Thousands(sv.PollsPerMinute), kit.Thousands(sv.PushesPerMinute)), th.Text)
	if sv.PacedUntil.After(e.Now) {
		add("rate limit", "the server asked us to wait "+e.LeftLong(sv.PacedUntil), th.Warn)
	}
	switch {
	case sv.ToolsError != "":
		add("tools", safe.Text(sv.ToolsError), th.Warn)
	case len(sv.Tools) > 0:
		add("tools", fmt.Sprintf("%s; %s starts one", kit.Count(len(sv.Tools), "tool"), e.Keys.Start.Label()), th.Text)
	}
	add("log level", safe.Line(sv.LogLevel), th.Text)
	add("roots", safe.Line(strings.Join(folders(sv.Roots), ", ")), th.Text)
	add("configured in", safe.Line(sv.Source), th.Text)
	add("says of itself", safe.Text(clip(sv.Instructions, 2000)), th.Dim)
	if len(sv.Stderr) > 0 {
		out = append(out, nil, []kit.Span{{Style: th.Heading, Text: "stderr, last lines"}})
		for _, l := range tail(sv.Stderr, 50) {
			out = append(out, []kit.Span{{Style: th.Dim, Text: safe.Line(l)}})
		}
	}
	if len(sv.Logs) > 0 {
		out = append(out, nil, []kit.Span{{Style: th.Heading, Text: "log messages"}})
		for _, l := range tail(sv.Logs, 100) {
			out = append(out, []kit.Span{
				{Style: th.Dim, Text: l.At.In(e.Now.Location()).Format("15:04:05") + "  " + safe.PadRight(safe.Line(l.Level), 9)},
				{Style: th.Text, Text: safe.Line(clip(l.Text, 2000))},
			})
		}
	}
	return out
}

func tail[T any](s []T, n int) []T { return s[max(len(s)-n, 0):] }

func clip(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + " …"
	}
	return s
}

func can(yes bool, why string) string {
	switch {
	case yes:
		return "yes"
	case why == "":
		return "no"
	}
	return "no, " + safe.Line(why)
}

func generationWords(g taskmodel.Generation) string {
	switch g {
	case taskmodel.GenDraft:
		return "the draft of SEP-1686"
	case taskmodel.GenCore:
		return "the core feature of 2025-11-25"
	case taskmodel.GenExtension:
		return "the extension of 2026-07-28"
	case taskmodel.GenNone:
		return "none on this server; its tools can be called plainly"
	}
	return safe.Line(string(g))
}

func ordinal(n int) string {
	suffix := "th"
	switch {
	case n%100 >= 11 && n%100 <= 13:
	case n%10 == 1:
		suffix = "st"
	case n%10 == 2:
		suffix = "nd"
	case n%10 == 3:
		suffix = "rd"
	}
	return fmt.Sprintf("%d%s", n, suffix)
}
