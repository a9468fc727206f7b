package taskmodel

import (
	"encoding/json"
	"time"
)

// A Snapshot is one complete statement of a server about one task, already
// read out of its generation's wire names. Remote text is raw.
type Snapshot struct {
	ID            string
	Status        Status // "" when the message had none (then it is listed in Missing)
	StatusMessage string
	CreatedAt     time.Time
	LastUpdatedAt time.Time
	TTL           TTL
	PollInterval  time.Duration // 0: absent or not valid
	Questions     []Question    // the extension's inputRequests; nil when not a part of the message
	Outcome       Outcome       // inlined result or error
	ParentID      string
	Children      []Child
	ModelNote     string
	Raw           json.RawMessage
	Missing       []string // fields that the generation requires and the message lacks, by wire name
	Lenient       []string // what was read against the schema, one sentence each
}

// Source says by which way a Snapshot came.
type Source string

const (
	FromCreate  Source = "create"  // the answer to the call that made the task
	FromGet     Source = "get"     // an answer to a poll
	FromList    Source = "list"    // a row of a listing
	FromPush    Source = "push"    // a notification
	FromCancel  Source = "cancel"  // the answer to a cancel
	FromJournal Source = "journal" // restored from disk
)

// An Observation is a Snapshot with the times that decide whether it is news.
type Observation struct {
	Snapshot
	Source  Source
	AskedAt time.Time // when the request that it answers was sent; for a push, when it was heard
	HeardAt time.Time
}
