package lean

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// Only what can be read from its file again may be dropped.
func TestDroppable(t *testing.T) {
	for _, tc := range []struct {
		name, smaps string
		want        bool
	}{
		{"text", "00400000-00ef6000 r-xp 00000000 fe:00 12 /usr/bin/mcptasks\nRss: 9884 kB\nPrivate_Dirty: 40 kB\nAnonymous: 0 kB\nSwap: 0 kB\nLocked: 0 kB", true},
		{"constants", "00ef6000-018d0000 r--p 00af6000 fe:00 12 /usr/bin/mcptasks\nAnonymous:             0 kB", true},
		{"a name with spaces", "00ef6000-018d0000 r--p 00af6000 fe:00 12 /opt/my tools/mcptasks (deleted)\nAnonymous: 0 kB", true},
		{"a loader has relocated in it", "00ef6000-018d0000 r--p 00af6000 fe:00 12 /usr/bin/mcptasks\nAnonymous: 120 kB", false},
		{"what was written is swapped out", "00ef6000-018d0000 r--p 00af6000 fe:00 12 /usr/bin/mcptasks\nAnonymous: 0 kB\nSwap: 4 kB", false},
		{"data", "018d0000-01960000 rw-p 014d0000 fe:00 12 /usr/bin/mcptasks\nAnonymous: 0 kB", false},
		{"shared with others", "7f00-8f00 r--s 00000000 fe:00 12 /dev/shm/x\nAnonymous: 0 kB", false},
		{"no file", "7f0000000000-7f0000010000 r--p 00000000 00:00 0 [vvar]\nAnonymous: 0 kB", false},
		{"nothing is told of it", "00400000-00ef6000 r-xp 00000000 fe:00 12 /usr/bin/mcptasks", false},
	} {
		lines := strings.Split(tc.smaps, "\n")
		m, ok := parseMapping(lines[0])
		for _, l := range lines[1:] {
			if _, first := parseMapping(l); first {
				t.Errorf("%s: %q is taken for a mapping", tc.name, l)
			}
			m.note(l)
		}
		if got := ok && m.droppable(); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

// The process is smaller afterwards, and goes on.
func TestDropText(t *testing.T) {
	before := fileBacked(t)
	DropText()
	if after := fileBacked(t); after >= before {
		t.Errorf("%d kB of files are mapped, before %d", after, before)
	}
}

// fileBacked is how much of files this process has in memory, in kB.
func fileBacked(t *testing.T) int {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "RssFile:" {
			n, _ := strconv.Atoi(f[1])
			return n
		}
	}
	t.Skip("the system does not tell")
	return 0
}
