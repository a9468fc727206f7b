package monitor

import (
	"encoding/json"
	"log/slog"
	"time"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/form"
	"mcptasks/taskmodel/journal"
)

// The monitor is used like this (see monitor.go for the methods):
//
//	m := monitor.New(opts)
//	go m.Run(ctx)                  // until ctx ends; then everything is closed
//	<-m.Dirty()                    // one slot: something changed since last read
//	v := m.Board()                 // *board.Version, immutable, never nil
//	events, stop := m.Events(n)    // for watch and notifications
//	m.Start(ctx, …) m.Cancel(ctx, key) m.Answer(ctx, …) m.Fetch(ctx, key)
//	m.Forget(ctx, key, delete) m.Add(ctx, server, id) m.Poll(ctx, key)
//	m.Tools(ctx, server) m.Wire(filter) m.Focus(keys) m.Pause(bool)
//	m.Connect(server) m.Disconnect(server) m.SetRoots m.SetLogLevel m.SaveDraft
//
// Every method is safe for concurrent use; those with a context wait for the
// effect and return an error that is a sentence for a person.

// Options make a monitor.
type Options struct {
	Servers []ServerSpec
	Journal journal.Store // nil: no memory
	// Forgetful says in a few words why there is no memory, where there should be
	// one; the servers' rows show it. "": none is wanted, or there is one.
	Forgetful string
	Readonly  bool
	Log       *slog.Logger
	Now       func() time.Time // nil: time.Now
	Seed      uint64           // for jitter; 0: random
	Version   string           // of mcptasks, sent as client version
	// FetchResults fetches results of ended tasks by itself (the UI); headless
	// commands that look at one task leave it off.
	FetchResults bool
	// NoAsk opens the way of a question (tasks/result in 2025-11-25) only when
	// Ask is called. A server may hand a question out once: a command that
	// only looks must not take it.
	NoAsk bool
	// Glance leaves out of the journal what a listing finds that had ended before
	// it was ever heard of: a command that prints a listing and ends would spend
	// most of its time on writing down what cannot change any more. What is known
	// and found as it was is not written again. What is not over, what has changed
	// and what is ours is journalled as ever.
	Glance bool
	// Taps says which of the taps that the journal knows are to be shown, by their
	// label; nil: none.
	Taps func(label string) bool
	// Limits; zero values are the defaults.
	MaxDepth          int           // nesting of a message's JSON, 1000
	MaxTasksPerServer int           // 200,000
	MaxQuestions      int           // open at once, of a server: 1,000
	MaxResultBytes    int64         // kept per result, 4 MiB
	Schema            form.Limits   // of what a form asks for
	WireEntries       int           // 5,000 in memory
	WireBytes         int64         // 16 MiB in memory
	PollMin           time.Duration // user's minimum; 0: 500 ms floor only
	PollDefault       time.Duration // when the server gives no hint; 0: 2 s
	PollCap           int           // polls in flight per server; 0: 8
}

// A ServerSpec is one configured server, ready to be connected.
type ServerSpec struct {
	Name       string
	Target     string // canonical, secrets masked: the journal's key
	Source     string
	Autostart  bool
	Disabled   string // "" or the reason, in words, why it cannot be used
	Dialer     mcp.Dialer
	Era        string
	Generation taskmodel.Generation
	NoSSE      bool // Streamable HTTP only
	PollMin    time.Duration
	Keep       func(tool string) bool // arguments and results in the journal; nil: all
	Roots      []string
	Secrets    []string // of its configuration: they are shown and kept nowhere, whoever says them
	Warning    string
	NoLogin    bool // its configuration signs in for it: there is nobody to ask
	NoReceiver bool
}

// A StartRequest asks for a tool call.
type StartRequest struct {
	Server string
	Tool   string
	Args   json.RawMessage
	TTL    time.Duration
	Plain  bool
	TaskID string // draft: forced id (a child that the server requires)
}

// A StartReply is what became of it.
type StartReply struct {
	Key     taskmodel.Key     // zero when no task was made
	Outcome taskmodel.Outcome // then: the call's own result
	Note    string
}

// WireFilter selects wire entries.
type WireFilter struct {
	Server string
	Task   string
	After  int64 // Seq
	Max    int   // newest Max; 0: all kept
}
