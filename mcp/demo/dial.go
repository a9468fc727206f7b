package demo

import (
	"context"
	"log/slog"
	"time"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
)

// InProcess connects clients to a Server in the same process. It is an
// mcp.Dialer.
type InProcess struct{ s *Server }

// Dialer makes connections to s by a pipe in memory.
func Dialer(s *Server) InProcess { return InProcess{s} }

// Dial opens a connection. The server answers in its own era whatever era is
// asked for, as a server on stdio does.
func (d InProcess) Dial(_ context.Context, _ string) (jsonrpc.Conn, error) {
	client, server := transport.Pipe()
	go func() {
		// The connection outlives the dialling; it ends with either side.
		if err := d.s.ServeConn(context.Background(), server); err != nil {
			d.s.log.Debug("in-process connection ended", "err", err)
		}
	}()
	return client, nil
}

// Kind is "stdio": one channel, both ways.
func (d InProcess) Kind() string { return "stdio" }

// A Member is one server of the fleet.
type Member struct {
	Name       string
	Generation taskmodel.Generation
	Server     *Server
	Dialer     InProcess
	// Handles must be told to the client by name: the generation cannot list
	// tasks. Empty where it can. Those that come later are told by
	// Server.OnArrival.
	Handles []Handle
}

// FleetOptions are what the servers of a fleet have in common; see Options.
type FleetOptions struct {
	Seed      uint64
	Speed     float64
	Log       *slog.Logger
	Now       func() time.Time
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
	// Still makes servers whose tasks are those of the start; no further ones
	// come.
	Still bool
}

// Fleet makes the three servers of "mcptasks demo", one for each generation
// and busy with tasks of every kind. The caller closes them.
func Fleet(o FleetOptions) []Member {
	var out []Member
	for i, m := range []struct {
		name  string
		gen   taskmodel.Generation
		tasks int
	}{
		{"ci", taskmodel.GenCore, 164},
		{"deploy", taskmodel.GenExtension, 24},
		{"lab", taskmodel.GenDraft, 30},
	} {
		seed := o.Seed
		if seed != 0 {
			seed += uint64(i) * 7919
		}
		arrivals := 40
		if o.Still {
			arrivals = 0
		}
		s := New(Options{
			Generation: m.gen, Name: m.name, Tasks: m.tasks, Arrivals: arrivals, Seed: seed, Speed: o.Speed,
			Log: o.Log, Now: o.Now, AfterFunc: o.AfterFunc,
		})
		member := Member{Name: m.name, Generation: m.gen, Server: s, Dialer: Dialer(s)}
		if m.gen == taskmodel.GenExtension {
			member.Handles = s.Handles()
		}
		out = append(out, member)
	}
	return out
}
