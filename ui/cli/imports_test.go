package cli_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// may says what the packages below a folder import of the house, the most
// particular folder counts: imports run one way, and only main.go puts all of
// it together. What is for tests alone is in no program.
var may = map[string][]string{
	"taskmodel":         {},
	"taskmodel/board":   {"taskmodel"},
	"taskmodel/form":    {},
	"taskmodel/journal": {"taskmodel"},
	"keymap":            {},

	"mcp":                  {"mcp/jsonrpc", "mcp/transport", "taskmodel"},
	"mcp/jsonrpc":          {},
	"mcp/transport":        {"mcp/jsonrpc"},
	"mcp/transport/signin": {"mcp/transport"},
	"mcp/config":           {},
	"mcp/monitor":          {"mcp", "mcp/transport", "taskmodel", "taskmodel/*"},
	"mcp/tap":              {"mcp", "mcp/jsonrpc", "mcp/transport", "taskmodel", "taskmodel/*"},
	"mcp/demo":             {"mcp/jsonrpc", "mcp/transport", "taskmodel"},
	"mcp/demo/faulty":      {"mcp/demo", "mcp/jsonrpc", "mcp/transport"},
	"mcp/setup":            {"mcp", "mcp/*", "taskmodel", "taskmodel/*"},
	"mcp/schematest":       {"taskmodel"},
	"mcp/peers":            {},
	"mcp/memnet":           {},
	"mcp/proctest":         {},

	"ui":            {"keymap", "mcp/monitor", "taskmodel", "taskmodel/*", "ui/*"},
	"ui/cli":        {"mcp", "mcp/monitor", "taskmodel", "taskmodel/*", "ui", "ui/*"},
	"ui/safe":       {},
	"ui/cli/guard":  {"ui/safe", "ui/cli/lean"},
	"ui/cli/lean":   {},
	"ui/screentest": {"mcp/monitor", "taskmodel", "taskmodel/*", "ui/screentest"},

	"screenshots": {"mcp/*", "taskmodel", "taskmodel/*", "ui", "ui/*"},
	"":            {"keymap", "mcp/*", "taskmodel", "taskmodel/*", "ui", "ui/*"},
}

// forTests are the packages that no program holds.
var forTests = []string{"mcp/schematest", "mcp/peers", "mcp/memnet", "mcp/proctest", "ui/screentest", "ui/screentest/picture"}

// TestImportsRunOneWay: the domain imports nothing of the house and has neither
// a clock nor I/O but in its journal; what speaks to servers knows no screen;
// the screens know neither wire nor files of other clients.
func TestImportsRunOneWay(t *testing.T) {
	t.Chdir("../..") // all of the house
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(file)
		if d.IsDir() && (name == "mcp/peers/gopeers" || d.Name() == ".git" || d.Name() == "testdata" || d.Name() == "node_modules") {
			return fs.SkipDir // another module; no code
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := strings.TrimPrefix(path.Dir(name), ".")
		for _, i := range f.Imports {
			what := strings.Trim(i.Path.Value, `"`)
			ours, inside := strings.CutPrefix(what, "mcptasks/")
			switch {
			case inside && !allowed(dir, ours):
				t.Errorf("%s imports %s", name, what)
			case inside && slices.Contains(forTests, ours) && dir != "screenshots" && !slices.Contains(forTests, dir):
				t.Errorf("%s imports %s, which is for tests", name, what)
			case strings.HasPrefix(what, "charm.land/") && (under(dir, "taskmodel") || under(dir, "mcp")):
				t.Errorf("%s imports %s: screens are drawn in ui", name, what)
			case slices.Contains([]string{"os", "net", "net/http", "database/sql", "os/exec"}, what) && under(dir, "taskmodel") && !under(dir, "taskmodel/journal"):
				t.Errorf("%s imports %s: the domain does no I/O", name, what)
			}
		}
		if under(dir, "taskmodel") && !under(dir, "taskmodel/journal") {
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "NewTimer", "NewTicker"}, s.Sel.Name) {
						t.Errorf("%s calls time.%s: the domain has no clock", name, s.Sel.Name)
					}
				}
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// allowed reports whether a package may import another of the house: one of its
// own folder's parts is always its own.
func allowed(dir, what string) bool {
	rule := dir
	for {
		if _, ok := may[rule]; ok {
			break
		}
		rule = strings.TrimPrefix(path.Dir(rule), ".")
	}
	for _, m := range may[rule] {
		if below, ok := strings.CutSuffix(m, "/*"); m == what || ok && strings.HasPrefix(what, below+"/") {
			return true
		}
	}
	return false
}

func under(dir, folder string) bool { return dir == folder || strings.HasPrefix(dir, folder+"/") }
