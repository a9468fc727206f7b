//go:build !unix

package ui

import tea "charm.land/bubbletea/v2"

// A job is the program as its shell sees it; here shells stop nothing.
type job struct{}

func newJob(func(tea.Msg)) *job { return &job{} }

func (*job) close() {}

func (*job) suspend() tea.Cmd { return nil }

func (*job) retake() tea.Cmd { return nil }
