package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"mcptasks/mcp/config"
	"mcptasks/mcp/transport"
)

const (
	samplingTime = 5 * time.Minute
	samplingText = 1 << 20 // bytes of a draft
	samplingTail = 500     // bytes of stderr that an error repeats
)

// Sampling gives the function that drafts a completion by the command that is
// configured for a server: the request's params as JSON on its stdin, the text
// on its stdout. A person approves the draft; nothing is sent. "" means that
// the server has no such command. Command and all that it starts are ended with
// ctx, after five minutes, and when it writes more than a MiB.
func Sampling(servers []config.Server) func(ctx context.Context, server string, params []byte) (string, error) {
	commands := map[string][]string{}
	for _, s := range servers {
		if c := s.Entry.SamplingCommand; len(c) > 0 {
			commands[s.Name] = c
		}
	}
	return func(ctx context.Context, server string, params []byte) (string, error) {
		c, ok := commands[server]
		if !ok {
			return "", nil
		}
		return draft(ctx, c, params)
	}
}

func draft(ctx context.Context, command []string, params []byte) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, samplingTime, fmt.Errorf("it took longer than %s", samplingTime))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out := &bounded{most: samplingText, over: func() { stop(fmt.Errorf("it wrote more than %d bytes", samplingText)) }}
	said := &bounded{most: samplingTail}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(params), out, said
	cmd.WaitDelay = time.Second
	transport.PrepareGroup(cmd)
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("starting %s: %w", command[0], err)
	}
	group, err := transport.NewGroup(cmd.Process)
	if err != nil {
		stop(err)
	}
	defer group.Close()
	ended := context.AfterFunc(ctx, group.Kill)
	err = cmd.Wait()
	ended()
	group.Sweep(0)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		if words := strings.TrimSpace(string(said.kept)); words != "" {
			return "", fmt.Errorf("%w: %s", err, words)
		}
		return "", err
	}
	return strings.TrimRight(string(out.kept), "\r\n"), nil
}

// A bounded buffer keeps the first bytes and takes the rest without keeping it.
type bounded struct {
	kept []byte
	most int
	over func() // called when there is more; nil: nobody minds
}

func (b *bounded) Write(p []byte) (int, error) {
	keep := p
	if room := b.most - len(b.kept); len(keep) > room {
		keep = keep[:room]
		if b.over != nil {
			b.over()
		}
	}
	b.kept = append(b.kept, keep...)
	return len(p), nil
}
