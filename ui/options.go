package ui

import (
	"context"
	"encoding/json"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"mcptasks/keymap"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/taskmodel/form"
	"mcptasks/ui/list"
	"mcptasks/ui/notify"
)

// Options are what the screens are run with. The zero value runs on the
// process's terminal with the defaults.
type Options struct {
	Keys   *keymap.Map // nil: the defaults
	Theme  string      // a built-in or one of Themes; "": auto
	Themes map[string]map[string]string

	List   list.Options
	NoSide bool              // no detail beside the list on wide windows
	Mouse  bool              // on from the start
	Images string            // auto, or one of graphics.Modes; "": auto
	Views  map[string]string // named filters of the configuration
	// ViewsFile is where views that are named on the screen are kept; "" keeps
	// them for this run only.
	ViewsFile string
	Notify    notify.Rules
	Schema    form.Limits // of what a form asks for
	Readonly  bool
	SaveDir   string // where files are saved; "": the working directory
	LogFile   string // for :log; "" has none

	// SignIn signs in to a server; nil: the screen says which command does it.
	SignIn func(ctx context.Context, server string) error
	// Sampling drafts a completion by the command configured for the server;
	// nil, or an empty text: there is none.
	Sampling func(ctx context.Context, server string, params []byte) (string, error)
	// TaskJSON is a task as the command line prints it, for the hook; nil: a
	// short form.
	TaskJSON func(t taskmodel.Task, v *board.Version) json.RawMessage
	// Bundle writes a task with its messages for :export, without secrets; nil
	// writes what the monitor knows.
	Bundle func(ctx context.Context, k taskmodel.Key, wire []taskmodel.WireEntry, w io.Writer) error

	Now    func() time.Time // nil: time.Now
	Input  io.Reader        // nil: the terminal
	Output io.Writer        // nil: the terminal
	Env    []string         // nil: the process's
	// Program and Started are for tests: further options, and the program's
	// Send.
	Program []tea.ProgramOption
	Started func(send func(tea.Msg))
}
