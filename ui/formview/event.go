package formview

import (
	"encoding/json"

	tea "charm.land/bubbletea/v2"

	"mcptasks/keymap"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/form"
	"mcptasks/ui/theme"
)

// EventKind is what the person wants.
type EventKind int

// The kinds.
const (
	None       EventKind = iota
	Send                 // accept: Content is the answer; for an address it is nil
	Decline              // asked once and confirmed
	Cancel               // asked once and confirmed
	Aside                // put aside: keep the draft, send nothing
	Editor               // open Text in $EDITOR and give what was saved to Edited
	File                 // ask for a file name and give the file's text to Edited
	Copy                 // copy Text
	Retry                // an address: tell the server that it is done, or repeat the call
	CancelTask           // ask for the question's task to be cancelled
)

// An Event is what came of a message.
type Event struct {
	Kind    EventKind
	Changed bool            // the draft changed: keep Model.Draft
	Content json.RawMessage // Send
	Text    string          // Editor, Copy
	Name    string          // Editor: a file name that tells the kind of text; Copy: what it is
	Open    string          // Send of an address: open it in the browser, as one argument and through no shell; with None when it was agreed to before
}

// A Model shows one question. It is owned by the goroutine of the screen.
type Model interface {
	// Update takes a key, a paste or a wheel.
	Update(k *keymap.Map, m tea.Msg) Event
	// View draws exactly h lines of at most w cells.
	View(th *theme.Theme, w, h int) string
	// Keys are those that count now, the most useful first.
	Keys(k *keymap.Map) []keymap.Binding
	// Context is where its keys are looked up.
	Context() keymap.Context
	// Draft is what has been filled in so far, nil when there is nothing to keep.
	Draft() json.RawMessage
	// Edited takes text that was written in $EDITOR or read from a file.
	Edited(text string) Event
	// SetQuestion takes the question's newer state: sent, answered, refused,
	// withdrawn. What has been filled in stays.
	SetQuestion(q taskmodel.Question)
	// Fill puts text into the field of that name, as a draft for the person; what
	// the person has typed there stays.
	Fill(name, text string) Event
}

// New makes the view of a question, with its kept draft. gen is what its server
// speaks, "" when that is not known: it decides what can be said in answer. l
// bounds the schema of which a form is made.
func New(q taskmodel.Question, gen taskmodel.Generation, l form.Limits) Model {
	switch q.Kind {
	case taskmodel.AskForm:
		return newQuestion(q, gen, l)
	case taskmodel.AskSampling:
		return newSampling(q, gen)
	case taskmodel.AskURL:
		return newVisit(q, gen)
	}
	return newUnknown(q, gen)
}
