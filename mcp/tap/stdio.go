package tap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"time"

	"mcptasks/mcp/transport"
)

// An Exit says how the server ended, for us to end likewise.
type Exit struct {
	Code   int
	Signal int    // 0: it exited
	Words  string // "ended with exit code 1"
}

const (
	sweepGrace = 500 * time.Millisecond // for what the server left behind
	drainGrace = time.Second            // for output after its death, where others hold its pipe
	orphanWait = 5 * time.Second        // for a server to see that its agent is dead
	orphanTerm = 2 * time.Second        // and to heed SIGTERM then
	farewell   = 500 * time.Millisecond // for the journal, at the end
)

// Stdio starts o.Command, passes everything between it and o.In, o.Out and
// o.Err, and returns when it has ended and all that it wrote was passed. ctx
// ends the server; signals are handed on to it when o.Signals says so. An error
// means that the server could not be started: it is a sentence, and the exit
// then has the code that a shell would give.
func Stdio(ctx context.Context, o Options) (Exit, error) {
	o = o.defaults()
	path, err := exec.LookPath(o.Command[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		code := 127
		if errors.Is(err, fs.ErrPermission) {
			code = 126
		}
		return Exit{Code: code}, fmt.Errorf("the command %q cannot be started: %w; install it or give its full path", o.Command[0], errors.Unwrap(err))
	}
	cmd := exec.Command(path, o.Command[1:]...)
	cmd.Args[0] = o.Command[0]
	cmd.Env, cmd.Dir = o.Env, o.Dir
	transport.PrepareGroup(cmd)
	ours, theirs, err := pipes()
	if err != nil {
		return Exit{Code: 126}, fmt.Errorf("making pipes for %q: %w", o.Command[0], err)
	}
	for _, pipe := range []any{ours[0], ours[1], o.In, o.Out} {
		roomier(pipe)
	}
	// The server's stderr is ours: the bytes do not even come by.
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], o.Err

	signals := make(chan os.Signal, 16)
	if o.Signals {
		watchSignals(signals)
	}
	was := parent()
	g := newGuard()
	defer g.end()
	err = cmd.Start()
	closeAll(theirs[:])
	if err != nil {
		closeAll(ours[:])
		return Exit{Code: 126}, fmt.Errorf("the command %q cannot be started: %w", o.Command[0], err)
	}
	g.over(cmd.Process)
	group, err := transport.NewGroup(cmd.Process)
	if err != nil {
		o.Log.Warn("what the server starts may outlive it", "err", err)
	}
	defer group.Close()

	t := newTap(o)
	c := t.couple(ours[0], ours[1])
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	t.attend(ctx, cmd.Process, group, signals, was, c.inEnded, exited)

	// The server is dead. What it started and left goes too; what they wrote is
	// passed first, as far as somebody reads it.
	group.Sweep(sweepGrace)
	select {
	case <-c.outEnded:
	case <-time.After(drainGrace):
		_ = ours[1].SetReadDeadline(time.Now())
	}
	c.finish()
	exit := exitOf(cmd.ProcessState)
	t.end("the server " + exit.Words)
	return exit, nil
}

// A coupling is the agent joined with its server.
type coupling struct {
	t                 *tap
	up                *joint
	serverOut         io.ReadCloser
	inEnded, outEnded chan struct{} // closed when the agent has sent its last, and the server
}

// couple joins the agent with the server's stdin and stdout and begins to pass
// what comes, and to read along.
func (t *tap) couple(serverIn io.WriteCloser, serverOut io.ReadCloser) *coupling {
	c := &coupling{t: t, up: &joint{w: serverIn}, serverOut: serverOut, inEnded: make(chan struct{}), outEnded: make(chan struct{})}
	t.link, t.down = &line{up: c.up}, &joint{w: t.o.Out}
	down := &downstream{w: t.down, q: t.q, some: t.expecting, look: t.look}
	t.begin()
	go func() {
		defer close(c.inEnded)
		t.pumpUp(t.o.In, c.up)
	}()
	go func() {
		defer close(c.outEnded)
		t.pumpDown(serverOut, down)
	}()
	return c
}

// finish waits until all that the server has written is passed, and closes
// both sides.
func (c *coupling) finish() {
	<-c.outEnded
	c.up.close()
	_ = c.serverOut.Close()
	if w, ok := c.t.o.Out.(io.Closer); ok && c.t.o.CloseOut {
		_ = w.Close() // the agent need not wait for the journal
	}
	if r, ok := c.t.o.In.(interface{ SetReadDeadline(time.Time) error }); ok {
		_ = r.SetReadDeadline(time.Now())
	}
}

// attend hands signals on until the server is dead, and sees to it that a
// server whose agent has died dies too.
func (t *tap) attend(ctx context.Context, p *os.Process, group transport.Group, signals <-chan os.Signal, was int, inEnded, exited <-chan struct{}) {
	look := time.NewTicker(500 * time.Millisecond)
	defer look.Stop()
	done := ctx.Done()
	var orphan time.Time
	stage := 0
	for {
		select {
		case <-exited:
			return
		case s := <-signals:
			passSignal(p, s)
		case <-done:
			done = nil
			group.Terminate()
			orphan, stage = t.o.Now(), 1
		case <-look.C:
			now := t.o.Now()
			if orphan.IsZero() {
				select {
				case <-inEnded:
				default:
					continue
				}
				if !t.outBroken() && parent() == was {
					continue // half closed: the agent still listens
				}
				orphan = now
			}
			switch {
			case stage == 0 && now.Sub(orphan) >= orphanWait:
				group.Terminate()
				orphan, stage = now, 1
			case stage == 1 && now.Sub(orphan) >= orphanTerm:
				group.Kill()
				orphan, stage = now, 2
			}
		}
	}
}

// pumpUp moves the agent's bytes to the server until they end.
func (t *tap) pumpUp(in io.Reader, up *joint) {
	defer up.close()
	buf := make([]byte, passBuffer)
	for {
		n, err := in.Read(buf)
		if n > 0 {
			b := buf[:n]
			if t.rewrite != nil {
				b = t.rewrite.pass(b)
			}
			t.q.pass(agent, b)
			if len(b) > 0 && up.pass(b) != nil {
				if c, ok := in.(io.Closer); ok {
					_ = c.Close() // a broken pipe to the agent, as without us
				}
				return
			}
		}
		if err != nil {
			if t.rewrite != nil {
				if b := t.rewrite.end(); len(b) > 0 {
					t.q.pass(agent, b)
					_ = up.pass(b)
				}
			}
			return
		}
	}
}

// pumpDown moves the server's bytes to the agent until they end, or the agent
// reads no more: then the server's pipe breaks as it would without us.
func (t *tap) pumpDown(out io.ReadCloser, down *downstream) {
	buf := make([]byte, passBuffer)
	for {
		n, err := out.Read(buf)
		if n > 0 {
			if werr := down.pass(buf[:n]); werr != nil {
				t.breakOut()
				_ = out.Close()
				return
			}
		}
		if err != nil {
			if down.end() != nil {
				t.breakOut()
			}
			return
		}
	}
}

// pipes makes the server's stdin and stdout: [0] is stdin, [1] stdout.
func pipes() (ours, theirs [2]*os.File, err error) {
	var e1, e2 error
	theirs[0], ours[0], e1 = os.Pipe()
	ours[1], theirs[1], e2 = os.Pipe()
	if err := errors.Join(e1, e2); err != nil {
		closeAll(ours[:])
		closeAll(theirs[:])
		return ours, theirs, err
	}
	return ours, theirs, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
