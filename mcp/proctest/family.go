package proctest

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// Family is a process and all that it has started, at any depth, itself first.
// Those that are dead and that nobody has taken note of are not in it. Only
// Linux's /proc tells of others than itself.
func Family(pid int) []int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range stats {
		id, _ := strconv.Atoi(strings.Split(f, "/")[2])
		if state, parent := stat(id); state != 0 && state != 'Z' {
			children[parent] = append(children[parent], id)
		}
	}
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// Alive reports whether a process runs; one that is dead does not, whether or
// not somebody has taken note of it. Without a /proc that cannot be told apart.
func Alive(pid int) bool {
	if runtime.GOOS == "linux" {
		state, _ := stat(pid)
		return state != 0 && state != 'Z' && state != 'X'
	}
	p, err := os.FindProcess(pid)
	return err == nil && p.Signal(syscall.Signal(0)) == nil
}

// Command is the command line of a process, "" where that is not known.
func Command(pid int) string {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return strings.ReplaceAll(strings.Trim(string(b), "\x00"), "\x00", " ")
}

// stat is a process's state and parent; the state is 0 where there is no such
// process.
func stat(pid int) (state byte, parent int) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0
	}
	// pid (name) state ppid; the name may hold anything.
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 2 {
		return 0, 0
	}
	parent, _ = strconv.Atoi(f[1])
	return f[0][0], parent
}
