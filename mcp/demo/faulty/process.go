package faulty

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"mcptasks/mcp/demo"
)

// Stdio serves one client on this process's stdin and stdout through a script.
// The script may end the process before that, kill it, or see to it that it
// never ends.
func Stdio(ctx context.Context, o demo.Options, script string) error {
	s, err := New(o, script)
	if err != nil {
		return err
	}
	defer s.Close()
	p := &process{s: s, link: newLink(s.book), out: os.Stdout}
	return p.run(ctx)
}

// A process is the carrier on stdio.
type process struct {
	s    *Server
	link *link

	mu     sync.Mutex // one message at a time on stdout; held for ever by a hang
	out    *os.File
	closed bool
	stuck  chan struct{} // closed by a hang: nothing is read any more
	once   sync.Once
}

func (p *process) run(ctx context.Context) error {
	p.stuck = make(chan struct{})
	for _, r := range p.s.book.all("start") {
		switch r.action {
		case "late":
			time.Sleep(r.wait)
		case "text", "before":
			p.write([]byte(r.arg), 0)
		default:
			p.perform(act{do: r.action, rule: r}, nil)
		}
	}
	fromClient, toDemo := io.Pipe()
	fromDemo, toClient := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- p.s.Demo().ServeStdio(ctx, fromClient, toClient) }()
	go p.pump(os.Stdin, p.link.incoming, func(b []byte) {
		_, _ = toDemo.Write(append(b, '\n'))
	}, func() {
		for _, r := range p.s.book.all("eof") {
			switch r.action {
			case "ignore":
				select {}
			case "late":
				time.Sleep(r.wait)
			default:
				p.perform(act{do: r.action, rule: r}, nil)
			}
		}
		_ = toDemo.Close()
	})
	go p.pump(fromDemo, p.link.outgoing, nil, func() {})
	return <-served
}

// pump takes lines through the rules. pass is nil for what goes to stdout.
func (p *process) pump(in io.Reader, through func([]byte) []act, pass func([]byte), ended func()) {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), 256<<20)
	for lines.Scan() {
		for _, a := range through(append([]byte(nil), lines.Bytes()...)) {
			p.perform(a, pass)
		}
		select {
		case <-p.stuck:
			select {} // what is in the pipe stays there
		default:
		}
	}
	ended()
}

// perform does one act.
func (p *process) perform(a act, pass func([]byte)) {
	switch a.do {
	case "close", "restart", "reset", "halfclose", "hang", "clock":
		// Who waits for it need not guess when it has happened.
		fmt.Fprintln(os.Stderr, "scripted", a.do)
	}
	switch a.do {
	case "deliver":
		deliver := func() {
			if !a.once.take() {
				return
			}
			if pass != nil {
				pass(a.bytes)
				return
			}
			p.write(a.bytes, a.slow)
		}
		if a.after > 0 {
			time.AfterFunc(a.after, deliver)
			return
		}
		deliver()
	case "close":
		_ = p.out.Close()
		os.Exit(0)
	case "crash":
		fmt.Fprintln(os.Stderr, "panic: scripted crash")
		os.Exit(a.rule.number)
	case "restart":
		os.Exit(0)
	case "reset":
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Kill()
		}
		select {}
	case "halfclose":
		p.mu.Lock()
		p.closed = true
		_ = p.out.Close()
		p.mu.Unlock()
	case "hang":
		p.once.Do(func() { close(p.stuck) })
		p.mu.Lock() // and never unlocked
	case "clock":
		p.s.Demo().Skew(a.rule.wait)
	case "stderr":
		line := strings.Repeat("e", 99) + "\n"
		for n := 0; n < a.rule.number; n += len(line) {
			_, _ = io.WriteString(os.Stderr, line)
		}
	case "grandchild":
		// It holds our stdout and stderr and will not be asked to leave.
		c := exec.Command("sh", "-c", `trap "" TERM HUP INT; exec sleep 120`)
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Start(); err != nil {
			fmt.Fprintln(os.Stderr, "grandchild:", err)
			return
		}
		fmt.Fprintln(os.Stderr, "grandchild", c.Process.Pid)
	}
}

// write puts one line on stdout.
func (p *process) write(b []byte, slow time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	b = append(append([]byte(nil), b...), '\n')
	if slow <= 0 {
		_, _ = p.out.Write(b)
		return
	}
	for i := range b {
		if _, err := p.out.Write(b[i : i+1]); err != nil {
			return
		}
		time.Sleep(slow)
	}
}
