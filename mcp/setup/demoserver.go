package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"mcptasks/mcp/demo"
	"mcptasks/taskmodel"
)

// DemoServerOptions are the flags of `mcptasks demo-server`.
type DemoServerOptions struct {
	Generation string
	Listen     string // HOST:PORT; "": stdio
	Tasks      int
	SSE        bool // with Listen: print the address of the legacy transport
	Speed      float64
	Seed       uint64
	Log        *slog.Logger
	In         io.Reader
	Out        io.Writer
}

// DemoServer serves one built-in server until ctx ends or, on stdio, until the
// end of In. With Listen it prints the URL, one line, as soon as it can be
// connected to.
func DemoServer(ctx context.Context, o DemoServerOptions) error {
	s := demo.New(demo.Options{Generation: taskmodel.Generation(o.Generation), Tasks: o.Tasks, Speed: o.Speed, Seed: o.Seed, Log: o.Log})
	defer s.Close()
	if o.Listen == "" {
		return s.ServeStdio(ctx, o.In, o.Out)
	}
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", o.Listen, err)
	}
	path := "/mcp"
	if o.SSE {
		path = "/sse"
	}
	if _, err := fmt.Fprintf(o.Out, "http://%s%s\n", l.Addr(), path); err != nil {
		return err
	}
	srv := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	_ = srv.Close() // streams last as long as their clients: they are cut
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
