package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/joho/godotenv"
	toml "github.com/pelletier/go-toml/v2"
)

// Search says where to look and what the environment is. Tests fill it; the
// program uses System.
type Search struct {
	Home, Cwd, XDGConfig, AppData string
	OS                            string
	Env                           func(string) (string, bool)
	LookPath                      func(string) (string, error)
	Files                         []string // -c: replace the search
	Servers                       []string // -s NAME=TARGET: replace the search
	Extra                         []Server // a URL or a command given outright
	Sets                          []string // --set NAME.key=value
}

// System is the search of the running process.
func System() Search {
	home, _ := os.UserHomeDir()
	cwd, _ := os.Getwd()
	conf := os.Getenv("XDG_CONFIG_HOME")
	if conf == "" {
		conf = filepath.Join(home, ".config")
	}
	return Search{Home: home, Cwd: cwd, XDGConfig: conf, AppData: os.Getenv("APPDATA"), OS: runtime.GOOS, Env: os.LookupEnv, LookPath: exec.LookPath}
}

// Config is all that was found.
type Config struct {
	File    File   // our own settings; zero when there is no file
	Path    string // where our own file is or would be
	Servers []Server
	Reports []Report
	from    map[string]string // of the settings that are written: key to file
	places  map[string]string // and to file and line
}

// A Report says of one file that was looked at what became of it.
type Report struct {
	Path    string
	Client  string
	Found   bool
	Servers []string
	Error   string
}

// Load reads all that Search names. An error is a fault in a file or flag that
// the person gave or that is our own; faults in other clients' files are told
// in Reports and harm nothing else.
func Load(s Search) (Config, error) {
	c := Config{Path: filepath.Join(s.XDGConfig, "mcptasks", "config.toml")}
	explicit := len(s.Files)+len(s.Servers)+len(s.Extra) > 0
	var err error
	if explicit {
		err = c.loadGiven(s)
	} else {
		err = c.loadFound(s)
	}
	if err != nil {
		return c, err
	}
	given := map[string]bool{}
	for _, flag := range s.Servers {
		name, target, ok := strings.Cut(flag, "=")
		if !ok || name == "" || strings.Contains(name, "/") {
			return c, fmt.Errorf("-s %q: it is NAME=TARGET, and a name holds no /", flag)
		}
		e, err := ParseTarget(target)
		if err != nil {
			return c, fmt.Errorf("-s %s: %w", name, err)
		}
		if given[name] {
			return c, fmt.Errorf("-s %s: that name is given twice", name)
		}
		given[name] = true
		c.Servers = append(c.Servers, Server{Name: name, Source: "-s", Client: "flag", Entry: e})
	}
	c.Servers = append(c.Servers, s.Extra...)
	c.dedupe()
	if err := c.apply(s.Sets); err != nil {
		return c, err
	}
	for i := range c.Servers {
		finish(&c.Servers[i], s)
	}
	return c, nil
}

// Place is the file and the line on which a setting is written, "" where none
// has it.
func (c Config) Place(key string) string { return c.places[key] }

// loadGiven reads the files named by -c and nothing else.
func (c *Config) loadGiven(s Search) error {
	for _, path := range s.Files {
		b, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("-c %s: %w", path, err)
		}
		if strings.EqualFold(filepath.Ext(path), ".toml") {
			ownErr := c.addOwn(path, b)
			if ownErr == nil {
				continue
			}
			if g, ok, err := parseForeign(path, b, s.Cwd); err == nil && ok && len(g.servers) > 0 && !strings.Contains(string(b), "[servers") {
				c.addForeign("codex", path, g, "-c")
				continue
			}
			return ownErr
		}
		g, ok, err := parseForeign(path, b, s.Cwd)
		if err != nil {
			return err
		}
		if !ok {
			return &FileError{path, 0, "no servers in it: it has neither mcpServers, servers nor mcp"}
		}
		c.addForeign("flag", path, g, "-c")
	}
	return nil
}

// loadFound reads our own file and those of other clients where they are.
func (c *Config) loadFound(s Search) error {
	b, err := os.ReadFile(c.Path)
	switch {
	case err == nil:
		if err := c.addOwn(c.Path, b); err != nil {
			c.Reports = append(c.Reports, Report{Path: c.Path, Client: "mcptasks", Found: true, Error: err.Error()})
			return err
		}
	case errors.Is(err, fs.ErrNotExist):
		c.Reports = append(c.Reports, Report{Path: c.Path, Client: "mcptasks"})
	default:
		return fmt.Errorf("our own configuration: %w", err)
	}
	if c.File.Import.None {
		return nil
	}
	seen := map[string]bool{}
	for _, p := range places(s) {
		if want := c.File.Import.Clients; want != nil && !slices.Contains(want, p.client) || seen[p.path] {
			continue
		}
		seen[p.path] = true
		b, err := os.ReadFile(p.path)
		if errors.Is(err, fs.ErrNotExist) {
			c.Reports = append(c.Reports, Report{Path: p.path, Client: p.client})
			continue
		}
		var f foreign
		if err == nil {
			f, _, err = parseForeign(p.path, b, s.Cwd)
		}
		if err != nil {
			c.Reports = append(c.Reports, Report{Path: p.path, Client: p.client, Found: true, Error: err.Error()})
			continue
		}
		c.addForeign(p.client, p.path, f, p.path)
	}
	return nil
}

// addOwn takes in a file of our own. Of several the later one wins, key by key.
func (c *Config) addOwn(path string, b []byte) error {
	f, err := ParseFile(path, b)
	if err != nil {
		return err
	}
	r := Report{Path: path, Client: "mcptasks", Found: true}
	for _, name := range slices.Sorted(maps.Keys(f.Servers)) {
		s := Server{Name: name, Source: path, Client: "mcptasks", Entry: f.Servers[name]}
		switch e := s.Entry; {
		case e.URL == "" && e.Command == "":
			s.Disabled = "the entry has neither a command nor a url"
		case e.URL != "" && e.Command != "":
			s.Disabled = "the entry has both a command and a url"
		}
		c.Servers = append(c.Servers, s)
		r.Servers = append(r.Servers, name)
	}
	var written map[string]any
	for _, into := range []any{&c.File, &written} {
		if err := toml.Unmarshal(trimBOM(b), into); err != nil {
			return &FileError{path, 0, err.Error()}
		}
	}
	if c.from == nil {
		c.from, c.places = map[string]string{}, map[string]string{}
	}
	lines := linesOf(trimBOM(b))
	for _, key := range writtenKeys(written, "") {
		c.from[key], c.places[key] = path, fmt.Sprintf("%s:%d", path, lines[key])
	}
	c.Reports = append(c.Reports, r)
	return nil
}

func (c *Config) addForeign(client, path string, f foreign, source string) {
	r := Report{Path: path, Client: client, Found: true}
	for _, fs := range f.servers {
		if source == "-c" {
			source = path
		}
		c.Servers = append(c.Servers, Server{Name: fs.name, Source: source, Client: client, Entry: fs.entry, Era: fs.era, Disabled: fs.off, Inputs: f.inputs})
		r.Servers = append(r.Servers, fs.name)
	}
	c.Reports = append(c.Reports, r)
}

// apply sets keys of servers as --set asks.
func (c *Config) apply(sets []string) error {
	for _, set := range sets {
		path, value, ok := strings.Cut(set, "=")
		if !ok || !strings.Contains(path, ".") {
			return fmt.Errorf("--set %q: it is NAME.key=value", set)
		}
		at, key := -1, ""
		for i, s := range c.Servers { // a name may hold dots: the longest that fits is meant
			rest, has := strings.CutPrefix(path, s.Name+".")
			if has && (at < 0 || len(s.Name) > len(c.Servers[at].Name)) {
				at, key = i, rest
			}
		}
		if at < 0 {
			name, _, _ := strings.Cut(path, ".")
			return fmt.Errorf("--set %q: there is no server %q", set, name)
		}
		if err := c.Servers[at].Entry.set(key, value); err != nil {
			return fmt.Errorf("--set %q: %w", set, err)
		}
		if c.Servers[at].set == nil {
			c.Servers[at].set = map[string]bool{}
		}
		c.Servers[at].set[key] = true
	}
	return nil
}

// set decodes one key. The value is TOML where it can be read as such, else
// the text itself.
func (e *ServerEntry) set(key, value string) error {
	var told error
	for _, v := range []string{value, tomlString(value)} {
		trial := "[servers.x]\n" + key + " = " + v
		if _, err := ParseFile("--set", []byte(trial)); err != nil {
			told = err // of two, that on the value as text is the one a person can use
			continue
		}
		return toml.Unmarshal([]byte(key+" = "+v), e)
	}
	var fe *FileError
	if errors.As(told, &fe) {
		return errors.New(strings.ReplaceAll(fe.Text, "servers.x.", ""))
	}
	return told
}

func tomlString(s string) string {
	b, err := toml.Marshal(map[string]string{"v": s})
	if err != nil {
		return "''"
	}
	return strings.TrimSpace(strings.TrimPrefix(string(b), "v = "))
}

// dedupe drops an entry that repeats an earlier one and renames one that has
// an earlier one's name but another target to client:name.
func (c *Config) dedupe() {
	byName := map[string]string{}
	out := c.Servers[:0]
	for _, s := range c.Servers {
		target := TargetOf(s.Entry)
		if t, ok := byName[s.Name]; ok {
			if t == target {
				continue
			}
			for n, base := 2, s.Client+":"+s.Name; ; n++ {
				s.Name = base
				if _, taken := byName[s.Name]; !taken {
					break
				}
				base = fmt.Sprintf("%s:%d", strings.TrimRight(base, "0123456789:"), n)
			}
		}
		byName[s.Name] = target
		out = append(out, s)
	}
	c.Servers = out
}

// finish puts variables in and finds what cannot work.
func finish(s *Server, where Search) {
	x := expander{env: where.Env, home: where.Home, folder: where.Cwd, sep: "/", source: s.Source,
		bare: s.Client == "gemini" || filepath.Base(filepath.Dir(s.Source)) == ".gemini"} // also when it is given by -c
	if where.OS == "windows" {
		x.sep = `\`
	}
	if s.Entry.EnvFile != "" {
		path := x.path(x.text(s.Entry.EnvFile), where.Cwd)
		extra, err := godotenv.Read(path)
		if err != nil && s.Disabled == "" {
			s.Disabled = fmt.Sprintf("its env file %s cannot be read: %v", path, plain(err))
		}
		x.extra = extra
	}
	s.raw, s.target = s.Entry, TargetOf(s.Entry)
	s.Entry = x.entry(s.raw)
	s.Entry.Cwd = x.path(s.Entry.Cwd, "")
	if s.Entry.TokenEnv != "" {
		s.token, _ = where.Env(s.Entry.TokenEnv)
	}
	if name := s.Entry.OAuth.IDP.IDTokenEnv; name != "" {
		s.idToken, _ = where.Env(name)
	}
	if len(x.extra) > 0 {
		env := maps.Clone(x.extra)
		maps.Copy(env, s.Entry.Env)
		s.Entry.Env = env
	}
	wanted := s.Inputs
	s.Inputs = nil
	for _, in := range wanted {
		if x.wanted[in.ID] {
			s.Inputs = append(s.Inputs, in)
			delete(x.wanted, in.ID)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(x.wanted)) {
		s.Inputs = append(s.Inputs, Input{ID: id, Description: id})
	}
	if s.Disabled != "" {
		return
	}
	switch t := s.Entry.Transport; {
	case t == "stdio" && !s.Stdio(), (t == "http" || t == "sse") && s.Stdio():
		s.Disabled = fmt.Sprintf("transport = %q does not go with the entry's %s", t, map[bool]string{true: "command", false: "url"}[s.Stdio()])
		return
	}
	if m := x.missing(); m != "" {
		s.Disabled = m
		return
	}
	if s.Stdio() && len(s.Inputs) == 0 {
		if _, err := where.LookPath(commandPath(s.Entry)); err != nil {
			s.Disabled = fmt.Sprintf("the command %s is not on this machine", s.Entry.Command)
		}
	}
}

// commandPath is the command as the process will look it up: a relative path
// with a separator counts from its own folder.
func commandPath(e ServerEntry) string {
	if strings.ContainsRune(e.Command, filepath.Separator) && !filepath.IsAbs(e.Command) && e.Cwd != "" {
		return filepath.Join(e.Cwd, e.Command)
	}
	return e.Command
}

func plain(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
