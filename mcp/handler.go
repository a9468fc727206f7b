package mcp

import (
	"encoding/json"

	"mcptasks/taskmodel"
)

// A Handler hears what a server says unasked. Its methods are called from the
// connection's goroutines, in the order of arrival on one stream, and must not
// block: the monitor only queues.
type Handler interface {
	// Snapshot: a status notification, an inlined state, a subscription's push.
	Snapshot(taskmodel.Observation)
	// Progress belongs to the task id, or to the call when task is "".
	Progress(task, call string, p taskmodel.Progress)
	// Asked: a question arrived or was seen again (same ID: nothing new).
	Asked(taskmodel.Question)
	// Withdrawn: the server cancelled its request, or the key vanished.
	Withdrawn(id taskmodel.QuestionID, why string)
	// ElicitationComplete: a URL elicitation was completed elsewhere.
	ElicitationComplete(elicitID string)
	// Log: notifications/message, and anything else related to a task that no
	// other method is for (then Level is "other" and Text the raw JSON).
	Log(taskmodel.LogLine)
	// ToolsChanged: fetch the tools again.
	ToolsChanged()
	// Pushing: the set of task ids for which pushes are acknowledged (the
	// extension); nil when the subscription has ended.
	Pushing(ids []string)
	// ReceiverTask: the state of a task that the server asked us to run.
	ReceiverTask(taskmodel.Observation, ReceiverInfo)
	// Wire: one message passed, either way.
	Wire(taskmodel.WireEntry)
}

// ReceiverInfo goes with a task that a server asked us to run.
type ReceiverInfo struct {
	Method string // elicitation/create or sampling/createMessage
	Params json.RawMessage
	Event  string // created | ended | retrieved | cancelled | expired
}
