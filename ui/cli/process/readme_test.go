//go:build unix

package process

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcptasks/mcp/demo"
)

// section gives the program's command lines of one section of the README.
func section(t *testing.T, title string) []string {
	t.Helper()
	b, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), "\n### "+title+"\n")
	if !ok {
		t.Fatalf("the README has no section %q", title)
	}
	rest, _, _ = strings.Cut(rest, "\n##")
	var lines []string
	for line := range strings.Lines(rest) {
		if c, ok := strings.CutPrefix(line, "    mcptasks "); ok {
			lines = append(lines, "mcptasks "+strings.TrimSpace(c))
		}
	}
	return lines
}

// TestReadmeSections follows the README's tasks to the letter, each command as
// it stands there. Only the id of the task is the one that there is. The name
// ci.example leads, by a proxy, to a server of the test.
func TestReadmeSections(t *testing.T) {
	for _, tt := range []struct {
		title string
		lines int
		setup func(t *testing.T, b *box)
		run   func(t *testing.T, b *box, line string)
	}{
		{"Watch a CI server's tasks", 3, func(t *testing.T, b *box) {
			b.ci(t)
			b.env["MCPTASKS_SET"] = "ci.ca_file=" + filepath.Join(b.home, "ca.pem")
		}, func(t *testing.T, b *box, line string) {
			switch {
			case strings.Contains(line, " ls "):
				if r := b.sh(t, 0, line); !strings.Contains(r.out, "STATUS") {
					t.Error(r.out)
				}
			case strings.Contains(line, " wait "):
				var s task
				b.read(0, &s, "-s", "ci=https://ci.example/mcp", "start", "ci", "build", "target=api")
				if r := b.sh(t, 0, strings.Replace(line, "ci/7f3a91c2", s.name()[:len("ci/")+8], 1)); !strings.Contains(r.out, "completed") {
					t.Error(r.out)
				}
			default:
				p := b.shell(line)
				if first := p.line(); !strings.HasPrefix(first, `{"time":`) {
					t.Error(first)
				}
				p.signal(os.Interrupt)
				if r := p.end(); r.code != 130 {
					t.Errorf("exit %d: %s", r.code, r.err)
				}
			}
		}},
		{"Answer from a script", 3, func(t *testing.T, b *box) {
			b.ci(t)
			var s struct{ Task task }
			b.read(6, &s, "start", "ci", "deploy_release", "service=api", "version=v1.2.3", "--wait")
			b.env["TASK"] = s.Task.name()
		}, func(t *testing.T, b *box, line string) {
			if strings.Contains(line, " watch ") {
				p := b.shell(line)
				for e := ""; !strings.Contains(e, `"event":"input"`) || !strings.Contains(e, `"schema":{`); {
					e = p.line()
				}
				p.signal(os.Interrupt)
				p.end()
				return
			}
			r := b.sh(t, 0, strings.Replace(line, "ci/7f3a91c2", b.env["TASK"], 1))
			want := map[string]string{"answer": b.env["TASK"][3:], "start": "v1.2.3"}[strings.Fields(line)[1]]
			if !strings.Contains(r.out, want) {
				t.Errorf("%s: no %s in %s", line, want, r.out)
			}
		}},
		{"Read Claude Code's servers", 3, func(t *testing.T, b *box) {
			text := `{"mcpServers":{"docs":{"command":"` + program + `","args":["demo-server"]}}}`
			if err := os.WriteFile(filepath.Join(b.cwd, ".mcp.json"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			b.write(".claude.json", `{"mcpServers":{"mine":{"type":"http","url":"http://127.0.0.1:1/mcp"}}}`)
		}, func(t *testing.T, b *box, line string) {
			r := b.sh(t, 0, line)
			want, not := []string{"docs"}, ""
			switch strings.Fields(line)[1] {
			case "config":
				want = []string{"docs", "mine", ".mcp.json", ".claude.json", "when named"}
			case "tools":
				want = []string{"build"}
			default:
				not = "mine"
			}
			for _, w := range want {
				if !strings.Contains(r.out, w) {
					t.Errorf("%s: no %s in %s", line, w, r.out)
				}
			}
			if not != "" && strings.Contains(r.out, not) {
				t.Errorf("%s reads another file: %s", line, r.out)
			}
		}},
		{"Sign in over SSH", 3, func(t *testing.T, b *box) {
			b.write(".config/mcptasks/config.toml", "[servers.ci]\nurl = '"+newGuarded(t).rs.URL+"/mcp'\n")
		}, func(t *testing.T, b *box, line string) {
			switch strings.Fields(line)[1] {
			case "login":
				b.signIn(b.shell(line), true)
			case "servers":
				if r := b.sh(t, 0, line); !strings.Contains(r.out, "ready") {
					t.Error(r.out)
				}
			default:
				b.sh(t, 0, line)
			}
		}},
	} {
		t.Run(tt.title, func(t *testing.T) {
			t.Parallel()
			lines := section(t, tt.title)
			if len(lines) != tt.lines {
				t.Fatalf("%d commands, and this test knows %d: %q", len(lines), tt.lines, lines)
			}
			b := newBox(t)
			tt.setup(t, b)
			for _, line := range lines {
				tt.run(t, b, line)
			}
		})
	}
}

// sh runs a command line as a shell reads it, to its end.
func (b *box) sh(t *testing.T, code int, line string) result {
	t.Helper()
	p := b.shell(line)
	p.in.Close()
	r := p.end()
	if r.code != code {
		t.Fatalf("%s: exit %d, want %d\n%s%s", line, r.code, code, r.out, r.err)
	}
	return r
}

// ci makes https://ci.example/mcp a server of the test, by a proxy and a private
// authority, and puts it into the configuration.
func (b *box) ci(t *testing.T) {
	t.Helper()
	d := demo.New(demo.Options{Tasks: 4, Seed: 7, Speed: 20})
	t.Cleanup(func() { d.Close() })
	a := newAuthority(t)
	s := a.serve(d.Handler(), "ci.example", false)
	p := httptest.NewServer(&relay{to: s.Listener.Addr().String()})
	t.Cleanup(p.Close)
	b.env["HTTPS_PROXY"] = p.URL
	ca := b.write("ca.pem", a.pem())
	b.write(".config/mcptasks/config.toml", "[servers.ci]\nurl = 'https://ci.example/mcp'\nca_file = '"+ca+"'\n")
}
