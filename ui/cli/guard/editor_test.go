//go:build linux

package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEditorAndPager: a field is written in $EDITOR, a text is read in $PAGER,
// and each time the screens come back. The files between them are gone then,
// and no server's control reaches a pager.
func TestEditorAndPager(t *testing.T) {
	home := t.TempDir()
	script := func(name, text string) string {
		path := filepath.Join(home, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	editor := script("edit it", `echo "$2" >>"$HOME/files"; cp "$2" "$HOME/edited"; printf 'from the editor' >"$2"; echo "$1 is here"`)
	pager := script("page", `echo "$1" >>"$HOME/files"; cp "$1" "$HOME/paged"; echo "a page is here"`)
	broken := script("broken", "exit 3")
	tmp := filepath.Join(home, "tmp")
	if err := os.Mkdir(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	env := append(environ(home), "EDITOR='"+editor+"' -w", "PAGER="+pager, "TMPDIR="+tmp)
	s := show(t, env, program, "--state", home+"/state", "-s", "ci="+program+" demo-server --tasks 0")
	s.see("No tasks")
	written := func(name string) string {
		b, _ := os.ReadFile(filepath.Join(home, name))
		return string(b)
	}
	back := func(what string) { // the screens have the terminal and take keys
		s.until("the screens after "+what, func() bool { return strings.Contains(s.text(), "mcptasks") && s.termios() != s.before })
	}

	// In a form, and sent as it was written.
	s.press("n")
	s.see("Checks one file")
	s.press("lint_file\r")
	s.see("ctrl+s")
	s.press("a.go\x07") // ctrl+g
	s.see("from the editor")
	back("the editor")
	if got := written("edited"); got != "a.go" {
		t.Errorf("the editor was given %q", got)
	}
	s.press("\x13") // ctrl+s
	s.see("lint_file")
	s.see("completed")

	// To read only, and what is written there goes nowhere.
	s.press("\r")
	s.see("Overview")
	s.press("\t\t\t")
	s.see("taskId")
	s.press("P")
	s.until("a page", func() bool { return strings.Contains(written("paged"), "taskId") })
	back("the pager")
	s.press("e")
	s.until("an editor", func() bool { return strings.Contains(written("edited"), "taskId") })
	back("the second editor")
	s.see("taskId")

	if files := strings.Fields(written("files")); len(files) != 3 {
		t.Errorf("opened %q", files)
	}
	s.until("their files are gone", func() bool {
		left, err := os.ReadDir(tmp)
		return err == nil && len(left) == 0
	})
	s.press("\x03\x03")
	s.end()
	s.given()

	// One that fails says so.
	env = append(environ(home), "EDITOR="+broken, "PAGER="+broken, "TMPDIR="+tmp)
	s = show(t, env, program, "--state", home+"/state2", "-s", "ci="+program+" demo-server --tasks 3")
	s.see("▌") // a task is there
	s.press("\r")
	s.see("Overview")
	s.press("\t\t\t")
	s.see("taskId")
	s.press("P")
	s.see("the pager: exit status 3")
	s.press("e")
	s.see("the editor: exit status 3")
	s.press("\x03\x03")
	s.end()
	s.given()
}
