package signin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"mcptasks/mcp/transport"
)

// A NeedLogin says that a person must sign in before the server can be used.
type NeedLogin struct {
	Server string
	// Scopes are those that the server asked for when it refused a request that
	// was signed (403, insufficient_scope); nil where there was no valid token.
	Scopes []string
}

// Error tells which command signs in.
func (e *NeedLogin) Error() string {
	if len(e.Scopes) > 0 {
		return fmt.Sprintf("%s asks for further rights (%s); sign in again: mcptasks login %s", e.Server, strings.Join(e.Scopes, " "), e.Server)
	}
	return fmt.Sprintf("%s wants a sign-in: mcptasks login %s", e.Server, e.Server)
}

// Unwrap makes it a transport.ErrSignIn.
func (e *NeedLogin) Unwrap() error { return transport.ErrSignIn }

func bearer(token string) http.Header {
	return http.Header{"Authorization": {"Bearer " + token}}
}

// usable refuses tokens that cannot stand in a header (RFC 6750 section 2.1).
func usable(token string) bool {
	for i := range len(token) {
		if token[i] < 0x21 || token[i] > 0x7e {
			return false
		}
	}
	return token != ""
}

// Env signs with the token in an environment variable, read at each request.
func Env(server, name string) transport.Authorizer { return envToken{server, name} }

type envToken struct{ server, name string }

func (e envToken) Header(context.Context) (http.Header, error) {
	token := strings.TrimSpace(os.Getenv(e.name))
	if !usable(token) {
		return nil, fmt.Errorf("the variable %s, which is to hold the token for %s, is empty or holds no token", e.name, e.server)
	}
	return bearer(token), nil
}

func (e envToken) Challenge(_ context.Context, status int, _ http.Header) (bool, error) {
	if status != http.StatusUnauthorized {
		return false, nil
	}
	return false, fmt.Errorf("%s refuses the token in %s", e.server, e.name)
}

const (
	commandTimeout = 30 * time.Second
	commandOutput  = 64 << 10
	commandAgain   = 10 * time.Second // between two runs for the same refusal
)

// Command signs with what a program prints, its first line. The program is run
// without a shell, at the first request and again when the server refuses the
// token; one at a time.
func Command(server string, argv []string) transport.Authorizer {
	return &commandToken{server: server, argv: argv, turn: make(chan struct{}, 1)}
}

type commandToken struct {
	server string
	argv   []string
	turn   chan struct{} // held while the fields below are used

	token string
	ran   time.Time
	err   error
}

func (c *commandToken) lock(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *commandToken) Header(ctx context.Context) (http.Header, error) {
	if err := c.lock(ctx); err != nil {
		return nil, err
	}
	defer func() { <-c.turn }()
	if c.token == "" {
		if err := c.run(ctx); err != nil {
			return nil, err
		}
	}
	return bearer(c.token), nil
}

// Identity is whom the token speaks for where it says so; else it is the
// program's sign-in, since each of its tokens may be another.
func (c *commandToken) Identity(ctx context.Context) string {
	h, err := c.Header(ctx)
	if err != nil {
		return ""
	}
	if who := transport.TokenIdentity(strings.TrimPrefix(h.Get("Authorization"), "Bearer ")); !strings.HasPrefix(who, "token ") {
		return who
	}
	return "the token of " + c.argv[0]
}

func (c *commandToken) Challenge(ctx context.Context, status int, _ http.Header) (bool, error) {
	if status != http.StatusUnauthorized {
		return false, nil
	}
	if err := c.lock(ctx); err != nil {
		return false, err
	}
	defer func() { <-c.turn }()
	if time.Since(c.ran) < commandAgain {
		// Another request has just got this token; ours may have had the old one.
		return true, nil
	}
	old := c.token
	if err := c.run(ctx); err != nil {
		return false, err
	}
	if c.token == old {
		return false, fmt.Errorf("%s refuses the token that its token_command prints", c.server)
	}
	return true, nil
}

// run runs the program. A failure is remembered for a while, so that many
// requests do not start it again and again.
func (c *commandToken) run(ctx context.Context) error {
	if c.err != nil && time.Since(c.ran) < commandAgain {
		return c.err
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	token, err := output(ctx, c.argv)
	if err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return ctx.Err()
		}
		err = fmt.Errorf("the token_command of %s failed: %w; run it by hand to see why", c.server, err)
	}
	c.ran, c.err = time.Now(), err
	if err == nil {
		c.token = token
	}
	return err
}

func output(ctx context.Context, argv []string) (string, error) {
	if len(argv) == 0 {
		return "", errors.New("it is empty")
	}
	var out limited
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout = &out // stderr is dropped: it may hold secrets
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", fmt.Errorf("it did not end within %s", commandTimeout)
		}
		return "", err
	}
	line, _, _ := strings.Cut(strings.TrimSpace(out.String()), "\n")
	if line = strings.TrimSpace(line); !usable(line) {
		return "", errors.New("it printed no token")
	}
	return line, nil
}

// limited keeps the beginning of what is written.
type limited struct{ bytes.Buffer }

func (l *limited) Write(b []byte) (int, error) {
	if room := commandOutput - l.Len(); room > 0 {
		l.Buffer.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}
