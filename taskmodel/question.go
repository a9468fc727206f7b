package taskmodel

import (
	"encoding/json"
	"time"
)

// A QuestionID names one question of one server in this process. ID is made by
// the generation's code: stable for as long as the question is open, and the
// same again when the same question is seen again (the extension's task id and
// key; the JSON-RPC request id of an elicitation).
type QuestionID struct {
	Server string
	ID     string
}

// QuestionKind is what is asked for.
type QuestionKind string

const (
	AskForm        QuestionKind = "form"
	AskURL         QuestionKind = "url"
	AskSampling    QuestionKind = "sampling"
	AskRoots       QuestionKind = "roots"
	AskUnsupported QuestionKind = "unsupported"
)

// QuestionState is where a question stands between the server and the person.
type QuestionState string

const (
	QuestionOpen        QuestionState = "open"
	QuestionSending     QuestionState = "sending"     // the person's answer is on its way
	QuestionAnswered    QuestionState = "answered"    // the server took it; "answered, waiting for the server"
	QuestionRefused     QuestionState = "refused"     // the server refused the answer; open again, see Refusal
	QuestionUnconfirmed QuestionState = "unconfirmed" // sent, outcome unknown; never sent again by the program
	QuestionWithdrawn   QuestionState = "withdrawn"   // see Withdrawn for the reason
)

// Open reports whether a person can answer it now.
func (s QuestionState) Open() bool { return s == QuestionOpen || s == QuestionRefused }

// A Question is something that a server asks of the person.
type Question struct {
	ID        QuestionID
	Task      Key    // zero: asked during a plain call, or not related to a task
	Tool      string // the tool of the task or call, "" when not known
	Key       string // the name to answer it by: the server's key, or the request id as text
	Kind      QuestionKind
	Method    string          // the protocol method, "elicitation/create"
	Message   string          // the server's words, raw
	Schema    json.RawMessage // form: requestedSchema
	URL       string          // url: raw, not yet judged
	ElicitID  string          // url: the elicitation's id
	Params    json.RawMessage // all of the request's params, raw
	AskedAt   time.Time       // when we first heard it
	Round     int             // the how manieth question of this task, from 1
	State     QuestionState
	SentAt    time.Time       // when the present answer was sent
	Refusal   string          // the server's words, raw
	Withdrawn string          // our words
	Done      bool            // url: the server said that it was completed elsewhere
	Draft     json.RawMessage // what the person has typed so far, as form drafts are written
	Receiver  bool            // asked as a task of ours (2025-11-25); Task then has Role Receiver
	// Repeat is the call that the server refused until the address was visited
	// (error -32042, 2025-11-25 client/elicitation, "URL Elicitation Required
	// Error"): consent sends nothing, and the call is made again when the person
	// says so. Its Tool is "" for every other question.
	Repeat Call `json:",omitzero"`
}

// NotSent begins the Refusal of a question whose answer could not be sent at
// all: our words, not the server's. Nothing is known to it, and the answer may be
// sent again without a second thought.
const NotSent = "not sent: "

// A Call is a tool call as it can be made again.
type Call struct {
	Tool  string
	Args  json.RawMessage
	TTL   time.Duration // asked for; 0: none
	Plain bool          // without a task
}

// Action is what a person does with a question.
type Action string

const (
	Accept  Action = "accept"
	Decline Action = "decline"
	Cancel  Action = "cancel"
)

// An Answer is a person's answer. Content is the form's content, or for
// sampling the whole CreateMessageResult; it is nil with Decline and Cancel
// and for a URL.
type Answer struct {
	Question QuestionID
	Action   Action
	Content  json.RawMessage
}
