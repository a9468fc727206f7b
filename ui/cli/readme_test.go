package cli_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"mcptasks/keymap"
	"mcptasks/ui/cli"
)

func readme(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestReadmeKeys: the README's table of keys is the one that the keymap makes.
func TestReadmeKeys(t *testing.T) {
	m := keymap.Default()
	_, rest, ok := strings.Cut(readme(t), "<!-- keys: go run . keys -->\n")
	got, _, ok2 := strings.Cut(rest, "<!-- /keys -->")
	if !ok || !ok2 {
		t.Fatal("the README has no table of keys between its marks")
	}
	if strings.TrimSpace(got) != strings.TrimSpace(m.Markdown()) {
		t.Error("the README's keys are out of date: put in what `go run . keys` prints")
	}
}

// inReadme finds the program's own command lines in the README: those that
// stand alone and those within a sentence.
var inReadme = regexp.MustCompile("(?m)^    (mcptasks .*)$|`(mcptasks [^`]*)`")

// commands maps each command line of the README to how a test runs it on the
// demo servers. The values name tasks by SERVER:TOOL; "" is a command whose
// running is another test's (see beside it), and only its words are checked.
var commands = map[string]struct{ run, want string }{
	// process.TestReadmeSections runs these, on the built program.
	`mcptasks logout ci`: {},
	`mcptasks -s ci=https://ci.example/mcp ls --status working,input_required`:                                                         {},
	`mcptasks -s ci=https://ci.example/mcp wait ci/7f3a91c2 --timeout 10m`:                                                             {},
	`mcptasks -s ci=https://ci.example/mcp watch -o jsonl`:                                                                             {},
	`mcptasks answer ci/7f3a91c2 --accept '{"strategy":"canary","ticket":"CHG-2041"}'`:                                                 {},
	`mcptasks start ci deploy_release service=api version=v1.2.3 --wait --on-input accept='{"strategy":"canary","ticket":"CHG-2041"}'`: {},

	`mcptasks servers ci`:  {`servers ci`, "0"},
	`mcptasks tools docs`:  {`tools lab`, "0"},
	`mcptasks answer TASK`: {`answer deploy:deploy_release`, "2"}, // there is no terminal here

	`mcptasks start ci build target=linux --wait`:                           {`start ci build target=api --wait`, "0"},
	`mcptasks ls --status working,input_required -o json`:                   {`ls --status working,input_required -o json`, "0"},
	`mcptasks wait ci/7f3a91c2 --timeout 10m`:                               {`wait ci:build --timeout 10m`, "0"},
	`mcptasks result ci/7f3a91c2 --save out/`:                               {`result ci:build --save $TMP/out`, "0"},
	`mcptasks cancel ci/7f3a91c2`:                                           {`cancel ci:reindex_search`, "0"},
	`mcptasks answer deploy/7f3a91c2 --accept '{"decision":"go on"}'`:       {`answer deploy:deploy_release --accept {"strategy":"canary","ticket":"CHG-2041"}`, "0"},
	`mcptasks watch -o jsonl`:                                               {`watch ci:build -o jsonl`, "0"},
	`mcptasks config`:                                                       {`config`, "0"},
	`mcptasks ls --filter`:                                                  {`ls --filter tool:build`, "0"},
	`mcptasks answer TASK --accept JSON`:                                    {`answer deploy:deploy_release --accept {}`, "2"},
	`mcptasks -c ./.mcp.json servers`:                                       {`servers`, "0"},
	`mcptasks add deploy 786512e2-9e0d-44bd-8f29-789f320fe840`:              {`add deploy 786512e2-9e0d-44bd-8f29-789f320fe840`, "4"},
	`mcptasks history ci/7f3a91c2 --bundle task.json`:                       {`history ci:build --bundle $TMP/task.json`, "0"},
	`mcptasks history -o jsonl`:                                             {`history -o jsonl`, "0"},
	`mcptasks demo`:                                                         {"", "the walk-through's test"},
	`mcptasks NAME`:                                                         {"", "the screens' tests"},
	`mcptasks watch`:                                                        {"", "above, with a task, so that it ends"},
	`mcptasks -s ci=https://ci.example/mcp`:                                 {"", "the screens' tests"},
	`mcptasks -s ev="npx -y @modelcontextprotocol/server-everything stdio"`: {"", "the peers' tests"},
	`mcptasks login ci --no-browser`:                                        {"", "the sign-in's tests"},
	`mcptasks login ci`:                                                     {"", "the sign-in's tests"},
	`mcptasks tap -- COMMAND ARG…`:                                          {"", "the tap's tests"},
	`mcptasks tap --install FILE SERVER`:                                    {"", "the tap's tests"},

	`mcptasks tap`: {"", "below, with what it needs"},
	// Package tap's TestProgramReadme runs these, on the built program.
	`mcptasks tap --install .mcp.json ci`:                                            {"", "mcp/tap"},
	`mcptasks tap --install .mcp.json ci --write`:                                    {"", "mcp/tap"},
	`mcptasks tap --uninstall .mcp.json ci --write`:                                  {"", "mcp/tap"},
	`mcptasks tap -- npx -y @modelcontextprotocol/server-everything stdio`:           {"", "mcp/tap"},
	`mcptasks tap --passive -- npx -y @modelcontextprotocol/server-everything stdio`: {"", "mcp/tap"},
	`mcptasks tap --answer -- npx -y @modelcontextprotocol/server-everything stdio`:  {"", "mcp/tap"},
	`mcptasks tap --listen 127.0.0.1:7070 https://ci.example/mcp`:                    {"", "mcp/tap"},
	`mcptasks tap --listen 0.0.0.0:7070 --public https://ci.example/mcp`:             {"", "mcp/tap"},
}

// TestReadmeCommands runs every command of the README.
func TestReadmeCommands(t *testing.T) {
	var lines []string
	for _, m := range inReadme.FindAllStringSubmatch(readme(t), -1) {
		lines = append(lines, strings.Join(strings.Fields(m[1]+m[2]), " "))
	}
	if len(lines) < 20 {
		t.Fatalf("only %d commands were found in the README", len(lines))
	}
	root := cli.Root(cli.Env{}, cli.Deps{})
	for _, line := range lines {
		how, ok := commands[line]
		if !ok {
			t.Errorf("no test runs the README's command %q", line)
			continue
		}
		words := strings.Fields(line)[1:]
		if c, _, err := root.Find(words); err != nil {
			t.Errorf("%q: %v", line, err)
		} else if how.run != "" && c == root {
			t.Errorf("%q names no command", line)
		}
		if how.run == "" {
			continue
		}
		t.Run(line, func(t *testing.T) {
			tmp := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				defer w.close()
				args := strings.Fields(strings.ReplaceAll(how.run, "$TMP", tmp))
				for i, a := range args {
					server, tool, named := strings.Cut(a, ":")
					if !named || server != "ci" && server != "deploy" {
						continue
					}
					args[i] = server + "/" + w.id(server, tool, 0)
					_, _, _ = w.run("add", server, w.id(server, tool, 0)) // known here, so the beginning of an id is enough
					args[i] = args[i][:len(args[i])-4]
				}
				out, errs, code := w.run(args...)
				if want := how.want; string(rune('0'+code)) != want {
					t.Errorf("exit %d, want %s\n%s%s", code, want, out, errs)
				}
			})
		})
	}
}
