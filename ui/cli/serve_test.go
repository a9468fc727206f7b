package cli

import (
	"testing"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
)

// A task that an earlier run left waiting needs nobody's input until its server
// has said so again: a command that answers and one that waits follow each other
// in every script.
func TestWaitsUnheard(t *testing.T) {
	k := taskmodel.Key{Server: "s", ID: "1", Role: taskmodel.Requestor}
	asked := func(states ...taskmodel.QuestionState) []taskmodel.QuestionState { return states }
	for _, tt := range []struct {
		name     string
		gen      taskmodel.Generation
		status   taskmodel.Status
		standing taskmodel.Standing
		states   []taskmodel.QuestionState
		want     bool
	}{
		{"at work", taskmodel.GenCore, taskmodel.Working, taskmodel.Live, nil, false},
		{"its question has not come", taskmodel.GenCore, taskmodel.InputRequired, taskmodel.Live, nil, true},
		{"known from an earlier run", taskmodel.GenCore, taskmodel.InputRequired, taskmodel.Restored, nil, false},
		{"its question is there", taskmodel.GenCore, taskmodel.InputRequired, taskmodel.Live, asked(taskmodel.QuestionOpen), false},
		{"a further one has not come", taskmodel.GenCore, taskmodel.InputRequired, taskmodel.Live, asked(taskmodel.QuestionAnswered), true},
		{"answered, to take effect", taskmodel.GenExtension, taskmodel.InputRequired, taskmodel.Live, asked(taskmodel.QuestionAnswered), false},
		{"withdrawn", taskmodel.GenExtension, taskmodel.InputRequired, taskmodel.Live, asked(taskmodel.QuestionWithdrawn), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := board.New()
			now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			b.Insert(taskmodel.Task{Key: k, Generation: tt.gen, Status: tt.status, Standing: tt.standing, FirstHeardAt: now})
			for i, state := range tt.states {
				b.PutQuestion(taskmodel.Question{ID: taskmodel.QuestionID{Server: "s", ID: string(rune('a' + i))}, Task: k, State: state, AskedAt: now})
			}
			if got := waitsUnheard(b.Publish(now), k); got != tt.want {
				t.Errorf("waitsUnheard = %v", got)
			}
		})
	}
}
