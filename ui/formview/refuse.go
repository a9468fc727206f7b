package formview

import (
	"strings"

	"mcptasks/taskmodel"
	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

// mute reports whether a question can only be answered or left: in 2026-07-28
// inputResponses hold results and no errors, so nothing says no to a completion
// that a task asks for (tasks.md, "Task Update Requests").
func mute(q taskmodel.Question, gen taskmodel.Generation) bool {
	return wantsCompletion(q) && gen == taskmodel.GenExtension && q.Task.ID != "" && !q.Receiver
}

// wantsCompletion reports whether a completion is asked for, also one that cannot be
// given since it is to come with tools.
func wantsCompletion(q taskmodel.Question) bool {
	return q.Kind == taskmodel.AskSampling || q.Kind == taskmodel.AskUnsupported && q.Method == "sampling/createMessage"
}

// noWay says so.
const (
	noNo  = "2026-07-28 has no way to say no to a completion."
	noWay = noNo + " Write one, put it aside, or cancel the task."
)

// sends says in words what declining or cancelling a question sends.
func sends(q taskmodel.Question, what EventKind, gen taskmodel.Generation) string {
	word := "decline"
	if what == Cancel {
		word = "cancel"
	}
	switch {
	case q.Repeat.Tool != "":
		return "sends nothing; the call is not made again"
	case wantsCompletion(q) && gen == taskmodel.GenExtension:
		return "sends nothing; the call is given up" // client/sampling, "Error Handling"
	case wantsCompletion(q):
		return "sends error -1, User rejected sampling request"
	}
	return "sends " + word + ", without content"
}

// confirming is the line that asks before a question is declined or cancelled.
func confirming(th *theme.Theme, q taskmodel.Question, what EventKind, gen taskmodel.Generation, w int) string {
	word := "Decline"
	if what == Cancel {
		word = "Cancel this question"
	}
	text := word + "? y " + sends(q, what, gen) + "; any other key goes back."
	if safe.Width(text) > w {
		text = strings.TrimSuffix(text, "; any other key goes back.") + "."
	}
	return th.Warn.Render(safe.Truncate(text, w, safe.Ellipsis))
}
