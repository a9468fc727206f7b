package ui

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
)

// onlyTicker is a model that tells, from within the running program, whether
// the renderer's ticker can be found.
type onlyTicker struct {
	program **tea.Program
	found   *bool
}

func (onlyTicker) Init() tea.Cmd { return func() tea.Msg { return eventsMsg(nil) } }

func (m onlyTicker) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if _, ok := msg.(eventsMsg); !ok {
		return m, nil
	}
	*m.found = tickerOf(*m.program) != nil
	return m, tea.Quit
}

func (onlyTicker) View() tea.View { return tea.NewView("") }

// A version of Bubble Tea that keeps its ticker elsewhere would leave the
// renderer at full speed for ever: nothing breaks, but it is to be known.
func TestPaceFindsTheTicker(t *testing.T) {
	var p *tea.Program
	found := false
	if tickerOf(tea.NewProgram(onlyTicker{&p, &found})) != nil {
		t.Error("a program that does not run has a ticker")
	}
	p = tea.NewProgram(onlyTicker{&p, &found}, tea.WithInput(nil), tea.WithOutput(io.Discard), tea.WithContext(t.Context()), tea.WithoutSignals())
	if _, err := p.Run(); err != nil {
		t.Fatal(err)
	}
	if !found {
		t.Error("the renderer's ticker was not found: its rate is fixed now")
	}
}

// The renderer looks 120 times a second while messages come and until 50 ms after
// the last, else four times a second; the first look after a rest comes at once.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tick := time.NewTicker(lively)
		defer tick.Stop()
		p := &pace{ticker: tick}
		looks := func(d time.Duration) (n int, first time.Duration) {
			from := time.Now()
			end := time.After(d)
			for {
				select {
				case <-tick.C:
					if n++; n == 1 {
						first = time.Since(from)
					}
				case <-end:
					return n, first
				}
			}
		}
		p.wake()
		if n, _ := looks(settled); n < 5 || n > 6 {
			t.Errorf("%d looks within 50 ms of a message", n)
		}
		if n, _ := looks(10 * time.Second); n < 39 || n > 42 {
			t.Errorf("%d looks in ten seconds of rest", n)
		}
		time.Sleep(7 * time.Millisecond)
		p.wake()
		if _, first := looks(20 * time.Millisecond); first > lively {
			t.Errorf("the first look after a message came after %s", first)
		}
		looks(time.Second)
		n := 0
		for range 20 { // messages 50 a second
			p.wake()
			more, _ := looks(20 * time.Millisecond)
			n += more
		}
		if n < 40 || n > 50 {
			t.Errorf("%d looks in 400 ms with a message each 20", n)
		}
		p.close()
		p.wake()
		time.Sleep(time.Minute) // settle must not find a ticker that is gone
	})
}
