// Package act is what screens ask of the program: plain values that a screen's
// Update returns and that the root carries out, with commands where they need
// a server or a disk. A screen does no I/O and knows no other screen.
//
// It imports taskmodel and monitor for their values only.
package act

import (
	"encoding/json"
	"time"

	tea "charm.land/bubbletea/v2"

	"mcptasks/mcp/monitor"
	"mcptasks/taskmodel"
)

// An Action is one wish of a screen; nil is none.
type Action any

type (
	// Batch is several actions, done in order.
	Batch []Action
	// Cmd runs a command of the screen's own (a filter over many rows); its
	// message comes back to the screen's Update.
	Cmd struct{ Cmd tea.Cmd }

	// Back leaves the screen.
	Back struct{}
	// Goto shows one of the main screens: tasks, inbox, servers, wire, help.
	Goto struct{ Screen string }
	// OpenTask shows a task's detail.
	OpenTask struct{ Task taskmodel.Key }
	// OpenResult shows a task's result, fetching it when needed.
	OpenResult struct{ Task taskmodel.Key }
	// OpenQuestion shows the form of one question.
	OpenQuestion struct{ ID taskmodel.QuestionID }
	// AnswerTask shows the form of the task's open question, or asks for it.
	AnswerTask struct{ Task taskmodel.Key }
	// OpenWire shows the wire log of a server, or of one task.
	OpenWire struct {
		Server string
		Task   taskmodel.Key
	}
	// OpenStart shows the choice of tools; Server and Tool choose ahead, Args
	// fill the form. TaskID is the id that a server requires of a child.
	OpenStart struct {
		Server, Tool string
		Args         json.RawMessage
		TaskID       string
	}
	// Filter filters the list.
	Filter struct{ Text string }
	// Command opens the command line with this text.
	Command struct{ Text string }

	// Cancel, Forget, Fetch and Poll are for all the tasks; the root asks first
	// where CLI.md says so.
	Cancel struct{ Tasks []taskmodel.Key }
	Forget struct {
		Tasks  []taskmodel.Key
		Delete bool
	}
	Fetch struct{ Tasks []taskmodel.Key }
	Poll  struct{ Tasks []taskmodel.Key }
	// Answer sends a person's answer.
	Answer struct{ Answer taskmodel.Answer }
	// Draft keeps what the person has typed so far.
	Draft struct {
		ID    taskmodel.QuestionID
		Draft json.RawMessage
	}
	// Start starts a tool.
	Start struct{ Request monitor.StartRequest }
	// Tools fetches the tools of a server again.
	Tools struct{ Server string }

	// Connect, Disconnect, SignIn, Roots and LogLevel are for one server.
	Connect    struct{ Server string }
	Disconnect struct{ Server string }
	SignIn     struct{ Server string }
	Roots      struct {
		Server string
		Roots  []string
	}
	LogLevel struct{ Server, Level string }

	// Copy puts text on the clipboard; What says what it is.
	Copy struct{ Text, What string }
	// Save writes data to a file: Name is only a proposal and never trusted.
	Save struct {
		Name string
		Data []byte
		What string
	}
	// Edit opens text in $EDITOR and gives back what was saved.
	Edit struct {
		Text string
		Name string // a file name, for the editor's colours
		Done func(text string, err error) tea.Msg
	}
	// Read reads a small text file.
	Read struct {
		Path string
		Done func(text string, err error) tea.Msg
	}
	// Page shows text in $PAGER.
	Page struct{ Text, Name string }
	// ReadResource reads a resource of a server and shows it as a result.
	ReadResource struct {
		Task      taskmodel.Key // whose result links to it; of it only the server counts when it has no id
		URI, Name string        // raw
	}
	// Browse opens a URL that passed safe.JudgeURL, on the person's consent.
	Browse struct{ URL string }

	// OpenFile writes data into a folder of its own and opens it with the
	// system's program.
	OpenFile struct {
		Name string
		Data []byte
	}
	// Notice shows a sentence in the status line for a while.
	Notice struct {
		Text  string
		Error bool
	}
	// Ask shows a confirmation and does Yes on consent.
	Ask struct {
		Title string
		Lines []string
		Yes   Action
		Label string // of the yes, "cancel 3 tasks"
		// NoLabel and Other are for questions with more than one way out.
		NoLabel string
		Other   []Choice
	}
	// Line asks for one line of text. Lines stand below the title; the
	// suggestion that is Mark has Marked beside it.
	Line struct {
		Title, Text  string
		Lines        []string
		Suggest      func(text string) []string
		Mark, Marked string
		Done         func(text string) Action
	}
)

// A Choice is a further way out of a confirmation.
type Choice struct {
	Key, Label string
	Do         Action
}

// After is how long a notice stays.
const After = 6 * time.Second
