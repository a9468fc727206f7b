package servers

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"mcptasks/taskmodel"
	"mcptasks/ui/act"
	"mcptasks/ui/safe"
)

var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// logLevel asks from which level on a server shall send log messages.
func logLevel(sv taskmodel.Server) act.Action {
	name := safe.Line(sv.Name)
	now := "No level was set from here: " + name + " sends what it thinks best."
	if sv.LogLevel != "" {
		now = "Now from " + safe.Line(sv.LogLevel) + " on."
	}
	return act.Line{
		Title: "From which level on shall " + name + " send log messages?",
		Lines: []string{now},
		Text:  sv.LogLevel,
		Mark:  sv.LogLevel, Marked: "now",
		Suggest: func(text string) []string {
			var out []string
			for _, l := range levels {
				if strings.HasPrefix(l, text) || slices.Contains(levels, text) {
					out = append(out, l)
				}
			}
			return out
		},
		Done: func(text string) act.Action {
			text = strings.TrimSpace(text)
			if !slices.Contains(levels, text) {
				return act.Notice{Text: fmt.Sprintf("%q is no level; there are %s.", safe.Line(text), strings.Join(levels, ", ")), Error: true}
			}
			return act.LogLevel{Server: sv.Name, Level: text}
		},
	}
}

// roots asks which folders a server may ask for.
func roots(sv taskmodel.Server) act.Action {
	name := safe.Line(sv.Name)
	now := folders(sv.Roots)
	lines := []string{"Now none: " + name + " is told of no folder."}
	if len(now) > 0 {
		lines = []string{"Now:"}
		for _, r := range now {
			lines = append(lines, "  "+safe.Line(r))
		}
	}
	return act.Line{
		Title: "Which folders may " + name + " know of?",
		Lines: append(lines, "", "Separate several by commas; an empty line is none. It counts until mcptasks ends; roots in the config file sets it for good."),
		Text:  strings.Join(now, ", "),
		Done: func(text string) act.Action {
			var out []string
			for _, r := range strings.Split(text, ",") {
				if r = strings.TrimSpace(r); r != "" {
					out = append(out, r)
				}
			}
			return act.Roots{Server: sv.Name, Roots: out}
		},
	}
}

// folders writes roots as a person does: the path of a file URI, others as they
// are.
func folders(roots []string) []string {
	var out []string
	for _, r := range roots {
		if u, err := url.Parse(r); err == nil && u.Scheme == "file" && (u.Host == "" || u.Host == "localhost") && u.Path != "" && !strings.Contains(u.Path, ",") {
			r = u.Path
		}
		out = append(out, r)
	}
	return out
}
