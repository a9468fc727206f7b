package ui

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	tea "charm.land/bubbletea/v2"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
)

// Run shows the screens until the person quits or ctx ends; then it returns
// nil. The monitor is the caller's: Run neither starts nor stops it. An error
// is one of the options (an unknown theme, a filter that does not parse) or of
// the terminal.
func Run(ctx context.Context, mon Monitor, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m, err := newModel(ctx, mon, o)
	if err != nil {
		return err
	}
	opts := []tea.ProgramOption{tea.WithContext(ctx), tea.WithFPS(int(second / lively))}
	if o.Input != nil {
		opts = append(opts, tea.WithInput(o.Input))
	}
	if o.Output != nil {
		opts = append(opts, tea.WithOutput(o.Output))
	}
	if o.Env != nil {
		opts = append(opts, tea.WithEnvironment(o.Env))
	}
	p := tea.NewProgram(m, append(opts, o.Program...)...)
	m.pace = newPace(p)
	defer m.pace.close()
	if o.Started != nil {
		o.Started(p.Send)
	}
	if o.Input == nil {
		m.job = newJob(p.Send)
		defer m.job.close()
	}
	forwarded := make(chan error, 1)
	go func() {
		// A panic here must not leave the terminal as the screens had it.
		defer func() {
			if r := recover(); r != nil {
				forwarded <- fmt.Errorf("the screens stopped: %v\n%s", r, debug.Stack())
				p.Kill()
				return
			}
			forwarded <- nil
		}()
		forward(ctx, mon, p.Send)
	}()
	_, err = p.Run()
	stopped := ctx.Err() != nil
	cancel()
	if bad := <-forwarded; bad != nil {
		return bad
	}
	if errors.Is(err, tea.ErrInterrupted) || stopped && errors.Is(err, tea.ErrProgramKilled) {
		return nil
	}
	return err
}

type (
	// boardMsg says that the board has a newer version.
	boardMsg struct{ v *board.Version }
	// eventsMsg brings what happened that a person may be told of.
	eventsMsg []taskmodel.Event
	// suspendMsg says that a signal asks the program to stop for now.
	suspendMsg struct{}
	// continuedMsg says that the program goes on after a stop that it did not know
	// of.
	continuedMsg struct{}
)

// forward is the one goroutine between the monitor and the program. Send waits
// for the program, which stands still while an editor runs: the monitor's flag
// has one slot and its events are queued, so nothing backs up into it.
func forward(ctx context.Context, mon Monitor, send func(tea.Msg)) {
	events, stop := mon.Events(256)
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-mon.Dirty():
			send(boardMsg{mon.Board()})
		case ev := <-events:
			var batch eventsMsg
			for {
				if worth(ev) {
					batch = append(batch, ev)
				}
				more := false
				if len(batch) < 1000 {
					select {
					case ev, more = <-events:
					default:
					}
				}
				if !more {
					break
				}
			}
			if len(batch) > 0 {
				send(batch)
			}
		}
	}
}

// worth reports whether the screens do something with an event beyond what the
// board shows.
func worth(ev taskmodel.Event) bool {
	switch ev.Kind {
	case taskmodel.EventQuestion:
		return true
	case taskmodel.EventStatus:
		return ev.Status != taskmodel.Working && ev.Status != taskmodel.Submitted
	case taskmodel.EventGone:
		return true
	}
	return false
}

// second is the grid on which clocks tick.
const second = time.Second
