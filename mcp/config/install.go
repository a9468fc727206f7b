package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	toml "github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
)

// A TapChange is one entry of a client's file with a tap put before its
// command, or taken away. Nothing is written before Save.
type TapChange struct {
	File   string
	Entry  string // as it will stand in the file
	Text   []byte // the whole file, as it will be
	before []byte
}

// TapEntry changes the entry of a server so that its client starts program
// (this one) as a tap of the command that stands there now; without install it
// puts that command back. All else in the file stays as it is, comments too.
// Errors are sentences.
func TapEntry(file, server, program string, install bool) (TapChange, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return TapChange{}, fmt.Errorf("cannot read the file: %w", err)
	}
	c := TapChange{File: file, before: b}
	edit := editJSON
	if strings.EqualFold(filepath.Ext(file), ".toml") {
		edit = editTOML
	}
	if c.Text, c.Entry, err = edit(file, b, server, func(words []string) ([]string, error) {
		if install {
			return tapWords(words, server, program)
		}
		return untapWords(words, server)
	}); err != nil {
		return TapChange{}, err
	}
	if err := onlyEntry(file, b, c.Text, server); err != nil {
		return TapChange{}, err
	}
	return c, nil
}

// Save writes the file and keeps it as it was beside it, whose name is returned.
func (c TapChange) Save() (string, error) {
	path := c.File
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("cannot write the file: %w", err)
	}
	now, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(now, c.before) {
		return "", fmt.Errorf("%s has changed meanwhile; nothing was written", c.File)
	}
	kept := path + ".before-tap-" + time.Now().Format("20060102T150405")
	err = writeNew(kept, c.before, info.Mode().Perm())
	for n := 2; errors.Is(err, fs.ErrExist) && n < 100; n++ { // of the same second
		if err = writeNew(fmt.Sprintf("%s-%d", kept, n), c.before, info.Mode().Perm()); err == nil {
			kept = fmt.Sprintf("%s-%d", kept, n)
		}
	}
	if err != nil {
		return "", fmt.Errorf("cannot keep a copy, so nothing was written: %w", err)
	}
	next := path + ".mcptasks-new"
	if err := writeNew(next, c.Text, info.Mode().Perm()); err != nil {
		return "", fmt.Errorf("cannot write the file: %w", err)
	}
	if err := os.Rename(next, path); err != nil {
		_ = os.Remove(next)
		return "", fmt.Errorf("cannot write the file: %w", err)
	}
	return kept, nil
}

func writeNew(path string, b []byte, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// tapWords is a command line behind a tap.
func tapWords(words []string, server, program string) ([]string, error) {
	if _, err := untapWords(words, server); err == nil {
		return nil, fmt.Errorf("%s is tapped already", server)
	}
	return append([]string{program, "tap", "--name", server, "--"}, words...), nil
}

// untapWords is the command line behind a tap.
func untapWords(words []string, server string) ([]string, error) {
	base := strings.TrimSuffix(filepath.Base(filepath.ToSlash(firstWord(words))), ".exe")
	i := slices.Index(words, "--")
	if !strings.HasPrefix(base, "mcptasks") || len(words) < 4 || words[1] != "tap" || i < 0 || i+1 >= len(words) {
		return nil, fmt.Errorf("%s is not tapped", server)
	}
	return words[i+1:], nil
}

func firstWord(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

// onlyEntry makes sure that nothing but the server's command line has changed.
func onlyEntry(file string, before, after []byte, server string) error {
	a, err := parsed(file, before)
	if err != nil {
		return err
	}
	b, err := parsed(file, after)
	if err != nil {
		return fmt.Errorf("%s: the change would break the file, so it is not made: %w", file, err)
	}
	blank(a, server)
	blank(b, server)
	if !reflect.DeepEqual(a, b) {
		return fmt.Errorf("%s: the change would alter more than the entry %s, so it is not made; edit it by hand", file, server)
	}
	return nil
}

func parsed(file string, b []byte) (v map[string]any, err error) {
	if strings.EqualFold(filepath.Ext(file), ".toml") {
		err = toml.Unmarshal(trimBOM(b), &v)
		return v, err
	}
	std, err := hujson.Standardize(trimBOM(bytes.Clone(b)))
	if err != nil {
		return nil, err
	}
	return v, json.Unmarshal(std, &v)
}

// blank takes the command lines of a server out of a file's value.
func blank(root map[string]any, server string) {
	cwd, _ := os.Getwd()
	for _, t := range tables(root, cwd) {
		if e, ok := t[server].(map[string]any); ok {
			delete(e, "command")
			delete(e, "args")
		}
	}
}

// noCommand says why an entry cannot be tapped.
func noCommand(server, url string) error {
	if url != "" {
		return fmt.Errorf("%s is reached at %s, not started by a command: run `mcptasks tap --listen 127.0.0.1:7070 %s` and put the address that it prints in place of the url", server, url, url)
	}
	return fmt.Errorf("%s has no command that a tap could stand before", server)
}

// editJSON changes an entry of a JSON file with or without comments.
func editJSON(file string, b []byte, server string, change func([]string) ([]string, error)) (text []byte, entry string, err error) {
	bom := len(b) - len(trimBOM(b))
	root, err := hujson.Parse(bytes.Clone(b[bom:]))
	if err != nil {
		return nil, "", fmt.Errorf("%s is no JSON, even with comments: %w", file, err)
	}
	m := findEntry(&root, server)
	if m == nil {
		return nil, "", fmt.Errorf("%s has no server %q", file, server)
	}
	obj, ok := m.Value.Value.(*hujson.Object)
	if !ok {
		return nil, "", fmt.Errorf("%s: the entry %s is no object", file, server)
	}
	command := memberOf(obj, "command")
	if command == nil {
		url := ""
		for _, k := range []string{"url", "serverUrl", "httpUrl"} {
			if u := memberOf(obj, k); u != nil {
				url = stringOf(u.Value)
			}
		}
		return nil, "", noCommand(server, url)
	}
	if list, ok := command.Value.Value.(*hujson.Array); ok { // opencode
		err = changeArray(list, change)
	} else {
		err = changeCommand(obj, command, change)
	}
	if err != nil {
		return nil, "", err
	}
	shown := hujson.Value{Value: &hujson.Object{Members: []hujson.ObjectMember{*m}}}
	return append(bytes.Clone(b[:bom]), root.Pack()...), strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(string(shown.Pack()), "{"), "}")), nil
}

// findEntry finds the member of a file that is a server's entry.
func findEntry(root *hujson.Value, server string) *hujson.ObjectMember {
	cwd, _ := os.Getwd()
	for _, path := range [][]string{{"projects", cwd, "mcpServers"}, {"mcpServers"}, {"mcp_servers"}, {"mcp", "servers"}, {"mcp"}, {"mcp.servers"}, {"servers"}} {
		v := root
		for _, name := range append(path, server) {
			obj, ok := v.Value.(*hujson.Object)
			if !ok {
				v = nil
				break
			}
			m := memberOf(obj, name)
			if m == nil {
				v = nil
				break
			}
			if name == server && v != root {
				return m
			}
			v = &m.Value
		}
	}
	return nil
}

func memberOf(o *hujson.Object, name string) *hujson.ObjectMember {
	for i := range o.Members {
		if l, ok := o.Members[i].Name.Value.(hujson.Literal); ok && l.String() == name {
			return &o.Members[i]
		}
	}
	return nil
}

func stringOf(v hujson.Value) string {
	l, ok := v.Value.(hujson.Literal)
	if !ok || l.Kind() != '"' {
		return ""
	}
	return l.String()
}

// wordsOf reads an array of strings.
func wordsOf(a *hujson.Array) ([]string, error) {
	var out []string
	for _, e := range a.Elements {
		l, ok := e.Value.(hujson.Literal)
		if !ok || l.Kind() != '"' {
			return nil, errors.New("an argument in the entry is no string; edit it by hand")
		}
		out = append(out, l.String())
	}
	return out, nil
}

// changeCommand changes a command with its arguments apart.
func changeCommand(obj *hujson.Object, command *hujson.ObjectMember, change func([]string) ([]string, error)) error {
	word := stringOf(command.Value)
	if word == "" {
		return errors.New("the entry's command is no string; edit it by hand")
	}
	list := &hujson.Array{}
	args := memberOf(obj, "args")
	if args != nil {
		var ok bool
		if list, ok = args.Value.Value.(*hujson.Array); !ok {
			return errors.New("the entry's args are no array; edit it by hand")
		}
	}
	words, err := wordsOf(list)
	if err != nil {
		return err
	}
	next, err := change(append([]string{word}, words...))
	if err != nil {
		return err
	}
	command.Value.Value = hujson.String(next[0])
	splice(list, words, next[1:])
	switch {
	case args == nil:
		m := hujson.ObjectMember{Name: hujson.Value{BeforeExtra: command.Name.BeforeExtra, Value: hujson.String("args")},
			Value: hujson.Value{BeforeExtra: command.Value.BeforeExtra, Value: list}}
		if strings.TrimSpace(string(m.Name.BeforeExtra)) != "" { // a comment belongs to the command alone
			m.Name.BeforeExtra = lastLine(m.Name.BeforeExtra)
		}
		if len(m.Name.BeforeExtra) == 0 {
			m.Name.BeforeExtra = hujson.Extra(" ")
		}
		i := slices.IndexFunc(obj.Members, func(o hujson.ObjectMember) bool { return o.Name.Value.(hujson.Literal).String() == "command" })
		obj.Members = slices.Insert(obj.Members, i+1, m)
	case len(list.Elements) == 0:
		i := slices.IndexFunc(obj.Members, func(o hujson.ObjectMember) bool { return o.Name.Value.(hujson.Literal).String() == "args" })
		obj.Members = slices.Delete(obj.Members, i, i+1)
	}
	return nil
}

// changeArray changes a command line that is one array.
func changeArray(list *hujson.Array, change func([]string) ([]string, error)) error {
	words, err := wordsOf(list)
	if err != nil {
		return err
	}
	next, err := change(words)
	if err != nil {
		return err
	}
	splice(list, words, next)
	return nil
}

// splice makes an array of words another one that ends alike; what stays keeps
// its layout.
func splice(list *hujson.Array, words, next []string) {
	same := 0
	for same < len(words) && same < len(next) && words[len(words)-1-same] == next[len(next)-1-same] {
		same++
	}
	kept := list.Elements[len(list.Elements)-same:]
	space, one := hujson.Extra(" "), true
	if len(list.Elements) > 0 {
		if l := lastLine(list.Elements[0].BeforeExtra); bytes.Contains(l, []byte("\n")) {
			space, one = l, false
		}
	}
	var out []hujson.Value
	for _, w := range next[:len(next)-same] {
		out = append(out, hujson.Value{BeforeExtra: space, Value: hujson.String(w)})
	}
	if len(out) > 0 && len(kept) > 0 && len(kept[0].BeforeExtra) == 0 {
		kept[0].BeforeExtra = space
	}
	list.Elements = append(out, kept...)
	if one && len(list.Elements) > 0 && strings.TrimSpace(string(list.Elements[0].BeforeExtra)) == "" {
		list.Elements[0].BeforeExtra = nil
	}
}

// lastLine is the white space of what stands before a value, from its last line
// break on.
func lastLine(e hujson.Extra) hujson.Extra {
	if i := bytes.LastIndexByte(e, '\n'); i >= 0 {
		return e[i:]
	}
	return hujson.Extra(" ")
}
