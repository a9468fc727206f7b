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
	"mcptasks/mcp/demo/faulty"
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
	Fault      string // a script of package faulty, or @FILE with one; "": all is well
	Log        *slog.Logger
	In         io.Reader
	Out        io.Writer
}

// DemoServer serves one built-in server until ctx ends or, on stdio, until the
// end of In. With Listen it prints the URL, one line, as soon as it can be
// connected to.
func DemoServer(ctx context.Context, o DemoServerOptions) error {
	opts := demo.Options{Generation: taskmodel.Generation(o.Generation), Tasks: o.Tasks, Speed: o.Speed, Seed: o.Seed, Log: o.Log}
	var handler http.Handler
	switch {
	case o.Fault != "" && o.Listen == "":
		// It works on this process's own stdin and stdout: it closes them.
		return faulty.Stdio(ctx, opts, o.Fault)
	case o.Fault != "":
		s, err := faulty.New(opts, o.Fault)
		if err != nil {
			return err
		}
		defer s.Close()
		handler = s.Handler()
	default:
		s := demo.New(opts)
		defer s.Close()
		if o.Listen == "" {
			return s.ServeStdio(ctx, o.In, o.Out)
		}
		handler = s.Handler()
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
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
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
