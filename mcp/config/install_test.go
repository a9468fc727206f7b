package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const claudeFile = `{
  // servers of this project
  "mcpServers": {
    "ev": {
      "type": "stdio",
      "command": "npx", // a comment that stays
      "args": ["-y", "@modelcontextprotocol/server-everything"],
      "env": { "A": "<1>" },
    },
    "bare": {
      "command": "serve"
    },
    "lines": {
      "command": "uvx",
      "args": [
        // the package
        "thing",
        "--x"
      ]
    },
    "web": { "type": "http", "url": "https://ci.example/mcp" }
  },
  "other": [1,2,   3], /* kept */
}
`

func TestTapEntryChangesOneEntryAndNothingElse(t *testing.T) {
	for _, tt := range []struct{ name, file, text, server, want string }{
		{"one line", "mcp.json", claudeFile, "ev", `"command": "/bin/mcptasks", // a comment that stays
      "args": ["tap", "--name", "ev", "--", "npx", "-y", "@modelcontextprotocol/server-everything"],
      "env": { "A": "<1>" },`},
		{"no args", "mcp.json", claudeFile, "bare", `"command": "/bin/mcptasks",
      "args": ["tap", "--name", "bare", "--", "serve"]`},
		{"several lines", "mcp.json", claudeFile, "lines", `"args": [
        "tap",
        "--name",
        "lines",
        "--",
        "uvx",
        // the package
        "thing",
        "--x"
      ]`},
		{"vscode", "mcp.json", "{\"servers\":{\"a\":{\"command\":\"x\",\"args\":[\"${input:k}\"]}}}", "a", `"command":"/bin/mcptasks","args":["tap", "--name", "a", "--", "x", "${input:k}"]`},
		{"opencode", "opencode.jsonc", `{"mcp": {"a": {"type": "local", "command": ["bun", "x"]}}}`, "a", `"command": ["/bin/mcptasks", "tap", "--name", "a", "--", "bun", "x"]`},
		{"codex", "config.toml", "# top\nmodel = \"o\"\n[mcp_servers.a]\ncommand = \"npx\"  # why\nargs = [\"-y\", \"p#q\"]\n[mcp_servers.b]\ncommand = \"y\"\n", "a",
			"command = \"/bin/mcptasks\"  # why\nargs = [\"tap\", \"--name\", \"a\", \"--\", \"npx\", \"-y\", \"p#q\"]\n"},
		{"codex without args", "config.toml", "[mcp_servers.b]\r\ncommand = \"y\"\r\nenv = { A = \"1\" }\r\n", "b",
			"command = \"/bin/mcptasks\"\r\nargs = [\"tap\", \"--name\", \"b\", \"--\", \"y\"]\r\nenv = { A = \"1\" }\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := filepath.Join(t.TempDir(), tt.file)
			if err := os.WriteFile(p, []byte(tt.text), 0o640); err != nil {
				t.Fatal(err)
			}
			c, err := TapEntry(p, tt.server, "/bin/mcptasks", true)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(c.Text), tt.want) {
				t.Fatalf("the file:\n%s\nwant in it:\n%s", c.Text, tt.want)
			}
			if !strings.Contains(c.Entry, "tap") || strings.Contains(c.Entry, "other") {
				t.Errorf("entry: %s", c.Entry)
			}
			if b, _ := os.ReadFile(p); string(b) != tt.text {
				t.Error("written without Save")
			}
			kept, err := c.Save()
			if err != nil {
				t.Fatal(err)
			}
			if b, _ := os.ReadFile(kept); string(b) != tt.text {
				t.Errorf("the copy: %s", b)
			}
			if i, err := os.Stat(p); err != nil || i.Mode().Perm() != 0o640 {
				t.Errorf("mode %v %v", i.Mode(), err)
			}
			if _, err := TapEntry(p, tt.server, "/bin/mcptasks", true); err == nil || !strings.Contains(err.Error(), "tapped already") {
				t.Errorf("twice: %v", err)
			}
			back, err := TapEntry(p, tt.server, "/bin/mcptasks", false)
			if err != nil {
				t.Fatal(err)
			}
			if tt.name != "codex without args" && string(back.Text) != tt.text {
				t.Errorf("and back:\n%s\nwant:\n%s", back.Text, tt.text)
			}
			// What the loader makes of it is what was there.
			if tt.file != "config.toml" {
				f, ok, err := parseForeign(p, back.Text, "/")
				if err != nil || !ok || len(f.servers) == 0 {
					t.Errorf("%v %v", ok, err)
				}
			}
		})
	}
}

func TestTapEntryRefusesInWords(t *testing.T) {
	for _, tt := range []struct{ name, file, text, server, want string }{
		{"no server", "mcp.json", claudeFile, "nope", `no server "nope"`},
		{"http", "mcp.json", claudeFile, "web", "mcptasks tap --listen 127.0.0.1:7070 https://ci.example/mcp"},
		{"no json", "mcp.json", "{", "x", "no JSON"},
		{"odd toml", "config.toml", "mcp_servers = { a = { command = \"x\", args = [\"y\"] } }\n", "a", "edit it by hand: command ="},
		{"args over lines", "config.toml", "[mcp_servers.a]\ncommand = \"x\"\nargs = [\n \"y\",\n]\n", "a", "edit it by hand"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := filepath.Join(t.TempDir(), tt.file)
			if err := os.WriteFile(p, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if c, err := TapEntry(p, tt.server, "/bin/mcptasks", true); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q\n%s", err, tt.want, c.Text)
			}
		})
	}
	p := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(p, []byte(claudeFile), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := TapEntry(p, "ev", "/bin/mcptasks", false); err == nil || !strings.Contains(err.Error(), "ev is not tapped") {
		t.Error(err)
	}
	c, err := TapEntry(p, "ev", "/bin/mcptasks", true)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Save(); err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("a file that changed meanwhile: %v", err)
	}
}
