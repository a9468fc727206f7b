package setup

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"mcptasks/mcp/demo"
	"mcptasks/mcp/monitor"
	"mcptasks/taskmodel/journal"
)

// DemoOptions make the monitor of `mcptasks demo`. Seed and Still make it the
// same at each run, for pictures and tests.
type DemoOptions struct {
	Log      *slog.Logger
	Readonly bool
	Version  string
	Seed     uint64
	Still    bool
	Now      func() time.Time
	// Journal is what to remember in, and Taps says which of the taps that it
	// knows are shown (see monitor.Options); nil: none.
	Journal journal.Store
	Taps    func(label string) bool
}

// A DemoFleet is the built-in servers with a monitor on them.
type DemoFleet struct {
	Monitor *monitor.Monitor
	Names   []string
	fleet   []demo.Member
}

// Demo makes the monitor on the three built-in servers. It remembers nothing
// unless it is given a journal.
func Demo(o DemoOptions) *DemoFleet {
	d := &DemoFleet{fleet: demo.Fleet(demo.FleetOptions{Seed: o.Seed, Still: o.Still, Log: o.Log})}
	opts := monitor.Options{Readonly: o.Readonly, Log: o.Log, Version: o.Version, FetchResults: true, Seed: o.Seed, Now: o.Now,
		Journal: o.Journal, Taps: o.Taps}
	for _, m := range d.fleet {
		d.Names = append(d.Names, m.Name)
		opts.Servers = append(opts.Servers, monitor.ServerSpec{
			Name: m.Name, Target: "built in: " + m.Name, Source: "mcptasks demo", Autostart: true, Dialer: m.Dialer, Generation: m.Generation,
		})
	}
	d.Monitor = monitor.New(opts)
	return d
}

// Run runs the monitor until ctx ends, and tells it of tasks as one who started
// them would know them: all of the server that cannot list them, and most of
// the others'. The rest shows what another client's tasks look like.
func (d *DemoFleet) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, m := range d.fleet {
		handles := m.Server.Handles()
		told := make(chan demo.Handle, 64)
		m.Server.OnArrival(func(h demo.Handle) {
			select {
			case told <- h:
			default: // a demo that is that far behind misses one
			}
		})
		wg.Go(func() {
			for i, h := range handles {
				if m.Handles != nil || i%8 != 7 {
					d.add(ctx, m.Name, h)
				}
			}
			for {
				select {
				case <-ctx.Done():
					return
				case h := <-told:
					d.add(ctx, m.Name, h)
				}
			}
		})
	}
	err := d.Monitor.Run(ctx)
	wg.Wait()
	for _, m := range d.fleet {
		m.Server.Close()
	}
	return err
}

func (d *DemoFleet) add(ctx context.Context, server string, h demo.Handle) {
	// An error shows in the server's row; there is nobody to tell it to here.
	_, _ = d.Monitor.Adopt(ctx, server, monitor.Handle{ID: h.ID, Tool: h.Tool, Args: h.Args})
}
