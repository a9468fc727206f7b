package demo

import (
	"encoding/json"

	"mcptasks/taskmodel"
)

// peopleTools: the tools of 2025-11-25 that make the client a receiver: they
// ask it for an elicitation or a sampling that is itself a task.
func peopleTools() []*tool {
	core := []taskmodel.Generation{taskmodel.GenCore}
	return []*tool{
		{
			name: "survey_owner", title: "Survey the owner", support: optional, only: core,
			description: "Asks the client for an elicitation as a task, and polls it.",
			input:       json.RawMessage(`{"type":"object","properties":{"topic":{"type":"string","title":"Topic","default":"on-call load"}},"required":["topic"]}`),
			script: func(w *work) []step {
				q := asks("survey", "How is the "+w.str("topic", "on-call load")+"?", `{"type":"object","properties":{
					"score":{"type":"integer","title":"Score","minimum":1,"maximum":5},"comment":{"type":"string","title":"Comment"}},"required":["score"]}`)
				q.delegate = true
				return delegated(w, q, w.caps.taskElicitation, "elicitation")
			},
		},
		{
			name: "summarise_thread", title: "Summarise a thread", support: optional, only: core,
			description: "Asks the client for a sampling as a task, and polls it.",
			input:       json.RawMessage(`{"type":"object","properties":{"thread":{"type":"string","title":"Thread","default":"incident-381"}},"required":["thread"]}`),
			script: func(w *work) []step {
				q := question{key: "summary", method: "sampling/createMessage", delegate: true, params: enc(map[string]any{
					"messages":     []any{map[string]any{"role": "user", "content": text("Summarise the thread " + w.str("thread", "incident-381") + " in three sentences.")}},
					"systemPrompt": "You summarise incident threads.", "maxTokens": 300,
				})}
				return delegated(w, q, w.caps.taskSample, "sampling")
			},
		},
	}
}

func delegated(w *work, q question, able bool, what string) []step {
	if !able {
		return join(toolError("This client cannot run an " + what + " as a task."))
	}
	return join(stage(w.secs(2), "Preparing the request", 0, 0),
		step{message: "Waiting for the client's task", ask: []question{q}, then: func(a map[string]json.RawMessage) []step {
			if len(a[q.key]) == 0 {
				return join(toolError("The client's task gave no answer."))
			}
			return join(done("Answered", result(nil, false, text("The client's task answered:\n"+string(a[q.key])))))
		}})
}
