package lean

import (
	"bufio"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// DropText lets go of the pages of files that are mapped only to be read: the
// program's text and constants. Of a program that has started most of them were
// needed once. What is used again comes back from the system's cache of the
// file, 16 pages at a time.
//
// A mapping that anything was ever written to (a loader's relocations, a
// debugger's breakpoints) stays as it is: what was written is nowhere else.
func DropText() {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer f.Close()
	var all []mapping
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if m, ok := parseMapping(lines.Text()); ok {
			all = append(all, m)
		} else if n := len(all); n > 0 {
			all[n-1].note(lines.Text())
		}
	}
	if lines.Err() != nil {
		return
	}
	for _, m := range all {
		if m.droppable() {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED)
		}
	}
}

// A mapping is one of /proc/self/smaps.
type mapping struct {
	from, to uintptr
	mode     string // as r-xp
	file     string
	touched  bool // a page is, or may be, other than the file's
	told     bool // it said how much of it is
}

// parseMapping reads the first line of a mapping; ok is false for the others.
func parseMapping(line string) (m mapping, ok bool) {
	f := strings.Fields(line)
	if len(f) < 6 {
		return m, false
	}
	from, to, ok := strings.Cut(f[0], "-")
	if !ok {
		return m, false
	}
	a, errA := strconv.ParseUint(from, 16, 64)
	b, errB := strconv.ParseUint(to, 16, 64)
	if errA != nil || errB != nil || b <= a {
		return m, false
	}
	return mapping{from: uintptr(a), to: uintptr(b), mode: f[1], file: strings.Join(f[5:], " ")}, true
}

// note reads one of the lines below it.
func (m *mapping) note(line string) {
	name, rest, _ := strings.Cut(line, ":")
	switch name {
	case "Anonymous", "Swap", "Locked": // not Private_Dirty: so is a file that was just written
		m.told = m.told || name == "Anonymous"
		m.touched = m.touched || strings.TrimSpace(rest) != "0 kB"
	}
}

// droppable reports whether all of it can be read from its file again.
func (m mapping) droppable() bool {
	return m.told && !m.touched && strings.HasPrefix(m.file, "/") && len(m.mode) == 4 && m.mode[0] == 'r' && m.mode[1] == '-' && m.mode[3] == 'p'
}
