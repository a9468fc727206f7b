package cli

import (
	"testing"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/ui"
)

// boarded is a monitor of which only the board is looked at.
type boarded struct {
	ui.Monitor
	v *board.Version
}

func (s boarded) Board() *board.Version { return s.v }

// What watch says of an event names who it is about: a task of a server, or the
// server alone.
func TestSentencesSayWho(t *testing.T) {
	now := time.Unix(1000, 0)
	b := board.New()
	key := taskmodel.Key{Server: "ci", ID: "7f3a91c2-0000", Role: taskmodel.Requestor}
	b.Insert(taskmodel.Task{Key: key, Generation: taskmodel.GenCore, Tool: "build", Status: taskmodel.Working, StatusMessage: "Linking"})
	b.PutQuestion(taskmodel.Question{ID: taskmodel.QuestionID{Server: "ci", ID: "q1"}, Task: key, Kind: taskmodel.AskForm, Message: "Go on?"})
	b.PutQuestion(taskmodel.Question{ID: taskmodel.QuestionID{Server: "ci", ID: "q2"}, Kind: taskmodel.AskForm, Message: "Who?"})
	s := &session{m: boarded{v: b.Publish(now)}}
	for _, tt := range []struct {
		e    taskmodel.Event
		want string
	}{
		{taskmodel.Event{Kind: taskmodel.EventStatus, Task: key}, "ci build 7f3a91c2 is working. Linking"},
		{taskmodel.Event{Kind: taskmodel.EventLog, Task: key, Message: "half"}, "ci build 7f3a91c2 says: half"},
		{taskmodel.Event{Kind: taskmodel.EventLog, Message: "hot\x1b[31m"}, "ci says: hot"},
		{taskmodel.Event{Kind: taskmodel.EventProgress, Message: "3 of 4"}, "ci: a call goes on. 3 of 4"},
		{taskmodel.Event{Kind: taskmodel.EventError, Message: "refused"}, "ci: refused"},
		{taskmodel.Event{Kind: taskmodel.EventQuestion, Task: key, Question: taskmodel.QuestionID{Server: "ci", ID: "q1"}},
			"ci build 7f3a91c2 asks for input (form): Go on? Answer it with: mcptasks answer ci/7f3a91c2-0000"},
		{taskmodel.Event{Kind: taskmodel.EventQuestion, Question: taskmodel.QuestionID{Server: "ci", ID: "q2"}},
			"ci asks for input (form): Who? It is answered on the screens (mcptasks, then i)."},
	} {
		tt.e.Server = "ci"
		if got := s.sentence(tt.e); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.e.Kind, got, tt.want)
		}
	}
}
