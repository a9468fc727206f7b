package cli

import (
	"context"
	"io"
	"log/slog"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/form"
	"mcptasks/ui"
)

// Env is the process as the commands see it; tests make their own.
type Env struct {
	Args           []string // without the program's name
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	StdinTTY       bool
	StdoutTTY      bool
	Width          int // columns of stdout's terminal, 0 when it is none
	Getenv         func(string) string
	Now            func() time.Time
	// ReadLine reads a line of stdin, io.EOF at its end; nil: of Stdin.
	ReadLine func(ctx context.Context) (string, error)
	// ReadPassword reads a line that does not show; nil: there is no way to.
	ReadPassword func(ctx context.Context, prompt string) (string, error)
	Edit         func(ctx context.Context, text, suffix string) (string, error) // $EDITOR
}

// Global holds the flags that every command has, after variables and defaults.
type Global struct {
	Config   []string // -c
	Servers  []string // -s NAME=TARGET
	Sets     []string // --set
	Target   string   // a URL given outright
	Command  []string // a command given after --
	Output   string   // table | json | jsonl
	Timeout  time.Duration
	HasLimit bool // --timeout was given
	State    string
	Readonly bool
	Log      string
	NoColor  bool
	OnInput  string
	Only     []string // servers named; nil is all
	// Purpose names the command in leases ("mcptasks watch").
	Purpose  string
	Headless bool // a command, not the screens
	Quiet    bool // nobody is to be asked for anything: a shell completes a word
	// Fetch makes a command's monitor do what the screens' does by itself: fetch
	// the results of ended tasks, and open the way of questions.
	Fetch bool
	// Glance: what a listing finds ended already is shown and not remembered.
	Glance bool
}

// Deps are what main hands in.
type Deps struct {
	Version Version
	// Open reads the configuration and makes a monitor that is not yet running.
	Open func(ctx context.Context, g Global) (*Opened, error)
	// UI runs the screens until the person quits.
	UI func(ctx context.Context, g Global, o *Opened) error
	// Demo makes a monitor on the built-in servers.
	Demo func(ctx context.Context, g Global) (*Opened, error)
	// DemoServer serves one built-in server until ctx ends.
	DemoServer func(ctx context.Context, env Env, o DemoServerOptions) error
	// Configured tells what was found, without connecting.
	Configured func(g Global) (ConfigReport, error)
	// Login and Logout sign in and out.
	Login  func(ctx context.Context, env Env, g Global, server string, noBrowser bool) error
	Logout func(ctx context.Context, g Global, server string) error
	// Tap passes an agent's session through.
	Tap func(ctx context.Context, env Env, g Global, o TapOptions) (int, error)
	// TapInstall changes an entry of a client's config file.
	TapInstall func(env Env, o TapInstallOptions) error
	// Keys is the README's key table.
	Keys func() string
}

// An Opened is a monitor with what belongs to it.
type Opened struct {
	Monitor ui.Monitor
	Run     func(ctx context.Context) error // the monitor's life
	Names   []string                        // servers, in order
	Memory  Memory                          // nil: no memory
	Trouble func() string                   // what keeps Memory from being written at present, "" for nothing; nil: nobody knows
	Notes   []string                        // what to say on stderr: no memory, a damaged file set aside, …
	Schema  form.Limits                     // of what a form asks for
	StdioOf func(server string) bool        // its tasks end with the process
	Log     *slog.Logger                    // the program's own; nil: none
	Close   func() error
	// Sampling drafts a completion for a server's request for one, "" where no
	// command is configured to; nil: none is for any server.
	Sampling func(ctx context.Context, server string, params []byte) (string, error)
}

// Memory is what the commands need of the journal beside the monitor.
type Memory interface {
	History(ctx context.Context, server, taskID string, limit int) ([]taskmodel.Event, error)
	Find(ctx context.Context, server, prefix string, role taskmodel.Role) ([]taskmodel.Key, error)
	Prune(ctx context.Context) (string, error)
	Export(ctx context.Context, w io.Writer) error
	Import(ctx context.Context, r io.Reader) (string, error)
	Bundle(ctx context.Context, k taskmodel.Key, wire []taskmodel.WireEntry, withIDs bool, w io.Writer) error
}

// Version is what `mcptasks version` prints.
type Version struct {
	Module string `json:"module"`
	Commit string `json:"commit,omitempty"`
	Go     string `json:"go"`
}

// DemoServerOptions are the flags of demo-server.
type DemoServerOptions struct {
	Listen     string
	Generation string
	Tasks      int
	Fault      string
	Speed      float64
	SSE        bool
}

// TapOptions are the flags of tap.
type TapOptions struct {
	Listen  string
	URL     string
	Command []string
	Passive bool
	Answer  bool
	Name    string
	Public  bool
}

// TapInstallOptions are the flags of tap --install and --uninstall.
type TapInstallOptions struct {
	File, Server string
	Uninstall    bool
	Write        bool
}

// A ConfigReport is what `mcptasks config` prints.
type ConfigReport struct {
	Path    string         `json:"path"`
	State   string         `json:"state"`
	Files   []ConfigFile   `json:"files"`
	Servers []ConfigServer `json:"servers"`
	Values  []ConfigValue  `json:"values"`
}

// A ConfigFile is one file that was looked at.
type ConfigFile struct {
	Path    string   `json:"path"`
	Client  string   `json:"client"`
	Found   bool     `json:"found"`
	Servers []string `json:"servers,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// A ConfigServer is one server that was found.
type ConfigServer struct {
	Name      string `json:"name"`
	Target    string `json:"target"`
	Source    string `json:"source"`
	Autostart bool   `json:"autostart"`
	Disabled  string `json:"disabled,omitempty"`
}

// A ConfigValue is one setting and where it came from.
type ConfigValue struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	From  string `json:"from"`
}
