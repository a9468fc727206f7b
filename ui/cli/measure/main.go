//go:build linux

package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// A bench is one run of the program: what it needs and what it puts down.
type bench struct {
	dir       string // a new folder under the system's
	program   string // mcptasks, built
	inspector string // a folder, or ""
	rounds    int
	rows      []row
}

type row struct{ what, ours, theirs, note string }

func main() {
	inspector := flag.String("inspector", "", "folder in which @modelcontextprotocol/inspector is installed")
	rounds := flag.Int("rounds", 11, "runs of each")
	only := flag.String("only", "", "measurements whose name matches")
	program := flag.String("program", "", "mcptasks itself; it is built when this is empty")
	flag.Parse()
	if err := run(*inspector, *program, *rounds, *only); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func run(inspector, program string, rounds int, only string) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "measure")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{dir: dir, program: program, inspector: inspector, rounds: rounds}
	if program == "" {
		if err := b.build(); err != nil {
			return err
		}
	}
	for _, m := range []struct {
		name string
		f    func(*bench) error
	}{
		{"first-frame", firstFrame},
		{"restored", restored},
		{"list", listing},
		{"memory", memory},
		{"idle", idle},
		{"keys", keys},
		{"polling", polling},
		{"headless", headless},
	} {
		if !match.MatchString(m.name) {
			continue
		}
		n := len(b.rows)
		if err := m.f(b); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		for _, r := range b.rows[n:] {
			fmt.Fprintf(os.Stderr, "%s: %s | %s | %s\n", r.what, r.ours, r.theirs, r.note)
		}
	}
	fmt.Println("| what | mcptasks | Inspector 2.12 | |")
	fmt.Println("|---|---|---|---|")
	for _, r := range b.rows {
		fmt.Printf("| %s | %s | %s | %s |\n", r.what, r.ours, r.theirs, r.note)
	}
	return nil
}

// build makes mcptasks as it is released.
func (b *bench) build() error {
	b.program = filepath.Join(b.dir, "mcptasks")
	c := exec.Command("go", "build", "-ldflags", "-s -w", "-o", b.program, "mcptasks")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	c.Stderr = os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	return nil
}

func (b *bench) put(what, ours, theirs, note string) {
	b.rows = append(b.rows, row{what, ours, theirs, note})
}

// state makes an empty state folder.
func (b *bench) state() string {
	dir, err := os.MkdirTemp(b.dir, "state")
	if err != nil {
		panic(err) // our own temporary folder is gone: nothing can be measured
	}
	return dir
}

// ours opens mcptasks' screens on the given servers, without the user's files.
func (b *bench) ours(state string, urls ...string) (*screen, error) {
	return open([]string{"HOME=" + b.dir, "XDG_CONFIG_HOME=" + b.dir}, b.program, b.args(state, urls)...)
}

func (b *bench) args(state string, urls []string) []string {
	config := filepath.Join(b.dir, "config.toml")
	if _, err := os.Stat(config); err != nil {
		_ = os.WriteFile(config, nil, 0o600)
	}
	args := []string{"-c", config, "--state", state}
	for i, u := range urls {
		args = append(args, "-s", fmt.Sprintf("s%d=%s", i+1, u))
	}
	return args
}

// theirs opens the Inspector's terminal UI on a server.
func (b *bench) theirs(url string) (*screen, error) {
	home := b.state()
	return open([]string{"HOME=" + home, "BROWSER=none"}, "node", filepath.Join(b.inspector, "node_modules/.bin/mcp-inspector"), "--tui", "--transport", "http", url)
}

// spread is a sample's median with its lowest and highest.
func spread(d []time.Duration) string {
	if len(d) == 0 {
		return ""
	}
	slices.Sort(d)
	return fmt.Sprintf("%s (%s–%s)", short(d[len(d)/2]), short(d[0]), short(d[len(d)-1]))
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func p99(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[int(math.Ceil(float64(len(d))*0.99))-1]
}

func short(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

func mb(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/(1<<20)) }

func times(a, b time.Duration) string { return fmt.Sprintf("%.1f ×", float64(a)/float64(b)) }
