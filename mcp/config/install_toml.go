package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	toml "github.com/pelletier/go-toml/v2"
)

// editTOML changes an entry of a TOML file (Codex) where it stands as it mostly
// does: a table of its own, command and args each on a line. Other spellings
// are refused: the file's text stays the person's.
func editTOML(file string, b []byte, server string, change func([]string) ([]string, error)) (text []byte, entry string, err error) {
	var root map[string]any
	if err := toml.Unmarshal(trimBOM(b), &root); err != nil {
		return nil, "", fmt.Errorf("%s: %w", file, err)
	}
	e := object(object(root["mcp_servers"])[server])
	if e == nil {
		return nil, "", fmt.Errorf("%s has no server %q", file, server)
	}
	command := str(e["command"])
	if command == "" {
		return nil, "", noCommand(server, str(e["url"]))
	}
	next, err := change(append([]string{command}, strs(e["args"])...))
	if err != nil {
		return nil, "", err
	}
	byHand := fmt.Errorf("%s: the entry %s is not spelled as one table with command and args on a line each; edit it by hand: command = %s, args = %s",
		file, server, quoted(next[0]), tomlList(next[1:]))
	lines := strings.SplitAfter(string(b), "\n")
	from := -1
	for i, l := range lines {
		if m := tomlHeader.FindStringSubmatch(l); m != nil && strings.Trim(m[1], `"'`) == server {
			from = i
		}
	}
	if from < 0 {
		return nil, "", byHand
	}
	to := from + 1
	for to < len(lines) && !strings.HasPrefix(strings.TrimSpace(lines[to]), "[") {
		to++
	}
	at, args := -1, -1
	for i := from + 1; i < to; i++ {
		switch m := tomlKey.FindStringSubmatch(lines[i]); {
		case m == nil:
		case m[2] == "command":
			at = i
		case m[2] == "args":
			args = i
		}
	}
	if at < 0 || args < 0 && e["args"] != nil {
		return nil, "", byHand
	}
	put := func(i int, value string) bool {
		m := tomlKey.FindStringSubmatch(lines[i])
		rest := strings.TrimRight(m[4], "\r\n")
		var one map[string]any
		if toml.Unmarshal([]byte(m[2]+" = "+rest), &one) != nil {
			return false // goes on on the next line
		}
		comment := ""
		if c := tomlComment.FindString(rest); c != "" {
			comment = c
		}
		lines[i] = m[1] + m[2] + m[3] + value + comment + m[4][len(rest):]
		return true
	}
	if !put(at, quoted(next[0])) {
		return nil, "", byHand
	}
	switch {
	case args >= 0:
		if !put(args, tomlList(next[1:])) {
			return nil, "", byHand
		}
	case len(next) > 1:
		m := tomlKey.FindStringSubmatch(lines[at])
		end := "\n"
		if strings.HasSuffix(lines[at], "\r\n") {
			end = "\r\n"
		}
		if !strings.HasSuffix(lines[at], "\n") {
			lines[at] += end
		}
		lines[at] += m[1] + "args = " + tomlList(next[1:]) + end
	}
	return []byte(strings.Join(lines, "")), strings.TrimSpace(strings.Join(lines[from:to], "")), nil
}

var (
	tomlHeader  = regexp.MustCompile(`^\s*\[\s*mcp_servers\s*\.\s*("[^"]*"|'[^']*'|[A-Za-z0-9_-]+)\s*\]`)
	tomlKey     = regexp.MustCompile(`^(\s*)(command|args)(\s*=\s*)(.*(?:\r?\n)?)$`)
	tomlComment = regexp.MustCompile(`\s+#[^"'\]]*$`)
)

func quoted(s string) string {
	b, err := json.Marshal(s) // a JSON string is a basic string of TOML
	if err != nil {
		return `""`
	}
	return string(b)
}

func tomlList(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = quoted(w)
	}
	return "[" + strings.Join(out, ", ") + "]"
}
