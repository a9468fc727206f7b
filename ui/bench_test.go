package ui

import (
	"context"
	"fmt"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/ui/screentest"
)

// crowd fills a monitor with n tasks, one in 50 waiting for input.
func crowd(n int) *screentest.Monitor {
	m := screentest.NewMonitor()
	now := time.Now()
	m.Change(func(b *board.Board) {
		b.PutServer(taskmodel.Server{Name: "ci", State: taskmodel.ServerReady, Generation: taskmodel.GenCore, Can: taskmodel.Can{List: true, Cancel: true}})
		b.PutServer(taskmodel.Server{Name: "lab", State: taskmodel.ServerReady, Generation: taskmodel.GenDraft})
		for i := range n {
			st := []taskmodel.Status{taskmodel.Working, taskmodel.Completed, taskmodel.Failed, taskmodel.Working}[i%4]
			if i%50 == 0 {
				st = taskmodel.InputRequired
			}
			b.Insert(taskmodel.Task{Key: taskmodel.Key{Server: []string{"ci", "lab"}[i%2], ID: fmt.Sprintf("%08x-0000-4000", i), Role: taskmodel.Requestor}, Generation: taskmodel.GenCore,
				Status: st, Tool: fmt.Sprintf("tool_%d", i%13), StatusMessage: fmt.Sprintf("step %d of many, on its way", i), CreatedAt: now.Add(-time.Duration(i) * time.Second),
				FirstHeardAt: now, StatusSince: now, LastHeardAt: now, TTL: taskmodel.TTL{Known: true, Duration: time.Hour}, Standing: taskmodel.Live,
				Progress: &taskmodel.Progress{Value: float64(i % 100), Total: 100, HasTotal: true}})
		}
	})
	return m
}

func benchModel(b *testing.B, n int) (*model, *screentest.Monitor) {
	mon := crowd(n)
	m, err := newModel(context.Background(), mon, Options{Theme: "dark"})
	if err != nil {
		b.Fatal(err)
	}
	m.Update(tea.WindowSizeMsg{Width: 160, Height: 50})
	m.Update(keyDown)
	return m, mon
}

var keyDown = tea.KeyPressMsg(tea.Key{Code: tea.KeyDown})

// BenchmarkKeyToFrame is a key and the frame after it; its cost must not
// depend on the number of tasks.
func BenchmarkKeyToFrame(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprintf("tasks=%d", n), func(b *testing.B) {
			m, _ := benchModel(b, n)
			b.ReportAllocs()
			for b.Loop() {
				m.Update(keyDown)
			}
		})
	}
}

// BenchmarkBoardToFrame is fifty changed tasks and the frame after them.
func BenchmarkBoardToFrame(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprintf("tasks=%d", n), func(b *testing.B) {
			m, mon := benchModel(b, n)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				b.StopTimer()
				mon.Change(func(bd *board.Board) {
					for range 50 {
						i++
						k := taskmodel.Key{Server: "ci", ID: fmt.Sprintf("%08x-0000-4000", (i*2)%n), Role: taskmodel.Requestor}
						bd.Change(k, time.Now(), func(t *taskmodel.Task) { t.StatusMessage = fmt.Sprint("changed ", i) })
					}
				})
				msg := boardMsg{mon.Board()}
				b.StartTimer()
				m.Update(msg)
			}
		})
	}
}

// BenchmarkQuestionToBadge is a question on the board and the frame that
// counts it, at 10,000 tasks.
func BenchmarkQuestionToBadge(b *testing.B) {
	m, mon := benchModel(b, 10_000)
	i := 0
	for b.Loop() {
		b.StopTimer()
		i++
		mon.Change(func(bd *board.Board) {
			bd.PutQuestion(taskmodel.Question{ID: taskmodel.QuestionID{Server: "ci", ID: fmt.Sprint(i % 100)}, Kind: taskmodel.AskForm, Message: fmt.Sprint("question ", i), State: taskmodel.QuestionOpen, AskedAt: time.Now()})
		})
		msg := boardMsg{mon.Board()}
		b.StartTimer()
		m.Update(msg)
	}
}

// TestFrameCostDoesNotFollowTheNumberOfTasks compares allocations, which do
// not depend on how busy the machine is.
func TestFrameCostDoesNotFollowTheNumberOfTasks(t *testing.T) {
	cost := func(n int) float64 {
		mon := crowd(n)
		m, err := newModel(context.Background(), mon, Options{Theme: "dark"})
		if err != nil {
			t.Fatal(err)
		}
		m.Update(tea.WindowSizeMsg{Width: 120, Height: 40})
		return testing.AllocsPerRun(50, func() { m.Update(keyDown) })
	}
	few, many := cost(200), cost(20_000)
	if many > few*1.5 {
		t.Errorf("a frame takes %.0f allocations at 20,000 tasks and %.0f at 200", many, few)
	}
}
