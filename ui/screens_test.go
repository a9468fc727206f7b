package ui_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/ui"
	"mcptasks/ui/screentest"
)

// A size is a window that the golden screens are drawn in.
type size struct{ w, h int }

func (s size) String() string { return fmt.Sprintf("%dx%d", s.w, s.h) }

var sizes = []size{{60, 20}, {80, 24}, {200, 60}}

// TestScreens draws every screen in three sizes.
func TestScreens(t *testing.T) {
	screens := []struct {
		name string
		keys []string
	}{
		{"list", nil},
		{"list-grouped", []string{"b", "j", "left"}},
		{"list-marked", []string{"j", "space", "space"}},
		{"detail", []string{"j", "enter"}},
		{"detail-result", []string{"j", "j", "j", "j", "enter", "tab"}},
		{"detail-messages", []string{"j", "enter", "tab", "tab"}},
		{"detail-raw", []string{"enter", "tab", "tab", "tab"}},
		{"detail-wire", []string{"enter", "tab", "tab", "tab", "tab"}},
		{"result", []string{"j", "j", "j", "j", "r"}},
		{"servers", []string{"s"}},
		{"servers-down", []string{"s", "G"}},
		{"inbox", []string{"i"}},
		{"form", []string{"j", "a"}},
		{"wire", []string{"w"}},
		{"wire-message", []string{"w", "enter"}},
		{"start", []string{"n"}},
		{"start-form", []string{"n", "enter"}},
		{"help", []string{"?"}},
		{"command", []string{":"}},
		{"filter", []string{"/", "s", "t"}},
		{"confirm-cancel", []string{"j", "space", "space", "c"}},
		{"confirm-forget", []string{"x"}},
		{"quit", []string{"q"}},
		{"add", []string{"+"}},
	}
	for _, s := range screens {
		for _, z := range sizes {
			t.Run(s.name+"-"+z.String(), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					mon := fleet()
					mon.Entries = wire()
					mon.Lines[key("deploy", "7f3a91c2-0000-4000-8000-000000002e7d")] = []taskmodel.LogLine{
						{At: ago(100 * time.Second), Level: "info", Logger: "rollout", Text: "canary is healthy"},
						{At: ago(50 * time.Second), Level: "warning", Text: "latency of eu-1 is up by 4 %"}}
					term := run(t, mon, z.w, z.h, nil)
					term.Press(s.keys...)
					term.Golden("screens/" + s.name + "-" + z.String())
					if c := mon.Calls(); len(c) > 0 {
						t.Errorf("looking at it called %q", c)
					}
				})
			})
		}
	}
}

func TestListInAllWidths(t *testing.T) {
	for _, z := range []size{{40, 10}, {120, 40}, {160, 50}} {
		bubble(t, func(t *testing.T) { run(t, fleet(), z.w, z.h, nil).Golden("screens/list-" + z.String()) })
	}
}

func TestEmptyStates(t *testing.T) {
	tests := map[string]func() *screentest.Monitor{
		"no-servers": screentest.NewMonitor,
		"no-tasks": func() *screentest.Monitor {
			m := screentest.NewMonitor()
			m.Change(func(b *board.Board) {
				b.PutServer(taskmodel.Server{Name: "ci", State: taskmodel.ServerReady, Generation: taskmodel.GenExtension, Can: taskmodel.Can{ListWhy: "this generation has no list; + adds a task by its id"}})
				b.PutServer(taskmodel.Server{Name: "lab", State: taskmodel.ServerRetrying, Error: "cannot be reached: connection refused at 127.0.0.1:8080", RetryAt: day.Add(4 * time.Second), Attempts: 4})
				b.PutServer(taskmodel.Server{Name: "new", State: taskmodel.ServerConnecting})
			})
			return m
		},
		"filtered-out": fleet,
	}
	for name, mon := range tests {
		for _, z := range sizes {
			t.Run(name+"-"+z.String(), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					term := run(t, mon(), z.w, z.h, func(o *ui.Options) {
						if name == "filtered-out" {
							o.List.Filter = "nosuchthing"
						}
					})
					term.Golden("screens/empty-" + name + "-" + z.String())
				})
			})
		}
	}
}

// U2: windows of any size are survived, also those that nothing fits in.
func TestU2_AnySizeIsSurvived(t *testing.T) {
	for _, keys := range [][]string{nil, {"enter"}, {"s"}, {"i"}, {"w"}, {"n"}, {"j", "a"}, {"?"}, {":"}, {"q"}, {"/"}, {"j", "j", "j", "j", "r"}, {"enter", "tab", "tab", "tab"}} {
		bubble(t, func(t *testing.T) {
			mon := fleet()
			mon.Entries = wire()
			term := run(t, mon, 100, 30, nil)
			term.Press(keys...)
			before := term.Screen()
			for _, z := range []size{{1, 1}, {20, 5}, {2, 40}, {200, 2}, {40, 10}, {41, 11}, {300, 100}, {39, 9}, {80, 18}, {80, 17}, {1, 1}, {160, 16}, {100, 30}} {
				term.Resize(z.w, z.h)
				got := strings.Split(term.Screen(), "\n")
				if len(got) != z.h {
					t.Fatalf("%v: %d lines", z, len(got))
				}
				if z.w < 40 || z.h < 10 {
					term.Miss("STATUS")
				}
			}
			if after := term.Screen(); after != before {
				t.Errorf("after the resizes (keys %q) the screen is\n%s\nand was\n%s", keys, after, before)
			}
		})
	}
}

func TestTooSmallSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		term := run(t, fleet(), 39, 9, nil)
		term.See("mcptasks needs a window of 40×10;", "39×9", "2 questions")
		term.Resize(12, 3)
		term.See("is too", "small")
	})
}

// U1: nothing that a server says reaches the terminal as control.
func TestU1_RemoteTextIsNoControl(t *testing.T) {
	evil := "x\x1b[31mRED\x1b]52;c;aGk=\x07\x1b]8;;http://evil\x1b\\link\x9b1mC1\x9d0;title\x9c\r\bBS\x00\u202ebidi\u200bzw\x1bPq#0\x1b\\\n2nd"
	bubble(t, func(t *testing.T) {
		m := screentest.NewMonitor()
		q := taskmodel.QuestionID{Server: evil, ID: "1"}
		m.Change(func(b *board.Board) {
			b.PutServer(taskmodel.Server{Name: evil, Target: evil, State: taskmodel.ServerRetrying, Error: evil, ServerName: evil, Instructions: evil,
				Stderr: []string{evil}, Warning: evil, Logs: []taskmodel.LogLine{{Level: evil, Text: evil, Logger: evil}}, ListIncomplete: evil,
				Generation: taskmodel.GenCore, Can: taskmodel.Can{ListWhy: evil, CancelWhy: evil, Cancel: true}, Tools: []taskmodel.Tool{{Name: evil, Title: evil, Description: evil, WhyNotTask: evil, InputSchema: []byte(`{"type":"object"}`)}}})
			b.Insert(taskmodel.Task{Key: taskmodel.Key{Server: evil, ID: evil, Role: taskmodel.Requestor}, Generation: taskmodel.GenCore, Status: "input_required", StatusMessage: evil, Tool: evil,
				FirstHeardAt: day, Standing: taskmodel.Live, Note: evil, ParentID: evil, ModelNote: evil, Lenient: []string{evil}, Owner: evil, CancelNote: evil,
				Args: []byte(quote(evil)), Raw: []byte(`{"a":` + quote(evil) + `}`), Inputs: []taskmodel.QuestionID{q},
				Transitions: []taskmodel.Transition{{At: day, Status: taskmodel.Status(evil), Message: evil, Note: evil}},
				Progress:    &taskmodel.Progress{Value: 1, Message: evil},
				Outcome:     taskmodel.Outcome{Result: []byte(`{"content":[{"type":"text","text":` + quote(evil) + `}]}`), Note: evil}})
			// A status that nobody defines, an error of the server's, a page to visit,
			// and a message to complete.
			b.Insert(taskmodel.Task{Key: key(evil, "2"), Generation: taskmodel.GenExtension, Status: taskmodel.Status(evil), Tool: evil, FirstHeardAt: day, Standing: taskmodel.Live,
				Outcome: taskmodel.Outcome{Err: &taskmodel.RPCError{Code: -32603, Message: evil, Data: []byte(quote(evil))}}})
			b.Insert(taskmodel.Task{Key: key(evil, "3"), Generation: taskmodel.GenExtension, Status: taskmodel.Failed, FirstHeardAt: day, Standing: taskmodel.Live, EndedAt: day,
				Outcome: taskmodel.Outcome{Err: &taskmodel.RPCError{Code: -32603, Message: evil, Data: []byte(quote(evil))}}})
			b.PutQuestion(taskmodel.Question{ID: taskmodel.QuestionID{Server: evil, ID: "2"}, Task: key(evil, "2"), Kind: taskmodel.AskURL, Message: evil, URL: "https://evil.example/" + evil,
				State: taskmodel.QuestionRefused, Refusal: evil, AskedAt: day})
			b.PutQuestion(taskmodel.Question{ID: taskmodel.QuestionID{Server: evil, ID: "3"}, Kind: taskmodel.AskSampling, Message: evil, State: taskmodel.QuestionWithdrawn, Withdrawn: evil, AskedAt: day,
				Params: []byte(`{"systemPrompt":` + quote(evil) + `,"messages":[{"role":"user","content":{"type":"text","text":` + quote(evil) + `}}],"maxTokens":9}`)})
			b.PutQuestion(taskmodel.Question{ID: q, Task: taskmodel.Key{Server: evil, ID: evil, Role: taskmodel.Requestor}, Tool: evil, Kind: taskmodel.AskForm, Message: evil, State: taskmodel.QuestionOpen,
				AskedAt: day, Schema: []byte(`{"type":"object","properties":{"a":{"type":"string","title":` + quote(evil) + `,"enum":[` + quote(evil) + `]}}}`)})
		})
		m.Entries = []taskmodel.WireEntry{{Seq: 1, At: day, Server: evil, Method: evil, ID: evil, Task: evil, Kind: "noise", Bytes: []byte(evil), Fault: evil}}
		term := run(t, m, 120, 40, nil, screentest.Keep())
		osc := len(term.OSC())
		for _, k := range strings.Fields("enter tab tab tab tab esc s i enter esc j enter esc j enter esc esc w enter esc esc n enter esc esc r esc a esc j enter tab tab tab esc r esc a esc esc j enter tab tab tab esc r esc esc c n x n q n b / esc :") {
			term.Press(k)
			for _, bad := range []string{"\x1b]52;", "\x1b]8;", "\x9b", "\u009b", "\x1bPq", "\x1b]0;title", "\u202e", "\u200b", "\x00"} {
				if strings.Contains(string(term.Bytes()), bad) {
					t.Fatalf("after %q the terminal got %q", k, bad)
				}
			}
		}
		for _, s := range term.OSC()[osc:] {
			if !strings.HasPrefix(s, "9;4") && !strings.HasPrefix(s, "7501") {
				t.Errorf("an operating system command was sent: %q", s)
			}
		}
	})
}
