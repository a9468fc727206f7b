package peers

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A Process is a running HTTP peer. It is used by one goroutine, the test's.
type Process struct {
	URL   string
	t     testing.TB
	name  string
	args  []string
	env   []string
	cmd   *exec.Cmd
	log   *tail
	ended chan struct{} // closed when cmd has
}

// Start starts an HTTP peer on a free loopback port and waits until it answers.
// It is killed, with all that it started, when the test ends.
func Start(t testing.TB, name string) *Process {
	t.Helper()
	peer := Get(t, name)
	sub := strings.NewReplacer("{port}", strconv.Itoa(freePort(t)))
	p := &Process{URL: sub.Replace(peer.URL), t: t, name: name, log: new(tail), env: os.Environ()}
	for _, a := range peer.Command {
		p.args = append(p.args, sub.Replace(a))
	}
	for k, v := range peer.Env {
		p.env = append(p.env, k+"="+sub.Replace(v))
	}
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("peer %s said:\n%s", name, p.log)
		}
	})
	p.start()
	return p
}

// Restart kills the peer and starts it anew at the same address, with nothing
// of what it knew.
func (p *Process) Restart() {
	p.t.Helper()
	p.stop()
	p.start()
}

func (p *Process) start() {
	p.t.Helper()
	p.cmd = exec.Command(p.args[0], p.args[1:]...)
	p.cmd.Env = p.env
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	alone(p.cmd)
	if err := p.cmd.Start(); err != nil {
		p.cmd = nil
		p.t.Fatalf("peer %s: %v", p.name, err)
	}
	// A busy machine may take long over it; one that has ended will never answer.
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	p.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait()
		close(ended)
		cancel()
	}(p.cmd, p.ended)
	if err := answers(ctx, p.URL); err != nil {
		p.t.Fatalf("peer %s does not answer at %s: %v\n%s", p.name, p.URL, err, p.log)
	}
}

func (p *Process) stop() {
	if p.cmd == nil {
		return
	}
	killGroup(p.cmd)
	<-p.ended
	p.cmd = nil
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
