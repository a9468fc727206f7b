package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"strconv"
)

// append writes a task as encoding/json would, without its escapes for HTML. A
// listing has thousands of tasks, in plain words most of them; where they are
// not, encoding/json does it.
func (j *taskJSON) append(b []byte) []byte {
	if len(j.Inputs) > 0 || j.Progress != nil || j.Arguments != nil {
		return appendJSON(b, j)
	}
	from := len(b)
	b = append(b, '{')
	text := func(name, v string, always bool) bool {
		if v == "" && !always {
			return true
		}
		if !plainText(v) {
			return false
		}
		b = append(append(appendName(b, name), '"'), v...)
		b = append(b, '"')
		return true
	}
	raw := func(name string, v json.RawMessage) {
		if len(v) > 0 {
			b = append(appendName(b, name), v...)
		}
	}
	plain := text("server", j.Server, true) && text("taskId", j.TaskID, true) && text("role", j.Role, true) &&
		text("generation", j.Generation, true) && text("status", j.Status, true) && text("statusMessage", j.StatusMessage, false) &&
		text("tool", j.Tool, false) && text("owner", j.Owner, false) && text("parentTaskId", j.ParentTaskID, false) &&
		text("createdAt", j.CreatedAt, false) && text("firstHeardAt", j.FirstHeardAt, true) && text("lastUpdatedAt", j.LastUpdatedAt, false)
	if plain {
		raw("ttlMs", j.TTL) // made here: numbers, and null
		raw("keepAliveMs", j.KeepAlive)
		if j.PollIntervalMs != 0 {
			b = strconv.AppendInt(appendName(b, "pollIntervalMs"), j.PollIntervalMs, 10)
		}
		plain = text("standing", j.Standing, true) && text("note", j.Note, false)
	}
	if !plain {
		return appendJSON(b[:from], j)
	}
	b = strconv.AppendBool(appendName(b, "cancelRequested"), j.CancelRequested)
	if j.Inputs == nil {
		b = append(appendName(b, "inputs"), "null"...)
	} else {
		b = append(appendName(b, "inputs"), "[]"...)
	}
	b = strconv.AppendBool(appendName(b, "hasResult"), j.HasResult)
	return append(b, '}')
}

// appendName writes a member's name, and the comma before it.
func appendName(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(append(b, '"'), name...)
	return append(b, '"', ':')
}

// appendJSON writes any value as writeJSON does, without the line's end.
func appendJSON(b []byte, v any) []byte {
	var w bytes.Buffer
	if err := writeJSON(&w, v); err != nil {
		return append(b, "null"...) // a raw part that is no JSON was made a string: there is nothing left to fail
	}
	return append(b, bytes.TrimRight(w.Bytes(), "\n")...)
}

// plainText reports whether a text stands in JSON as it is, and on a terminal.
func plainText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// A taskStream writes tasks one after the other, as an array or a line each, so
// that a reader of ten thousand need not wait for the last.
type taskStream struct {
	w     *bufio.Writer
	array bool
	n     int
	buf   []byte
}

func (s *taskStream) put(j *taskJSON) error {
	s.buf = s.buf[:0]
	if s.array {
		sep := ",\n "
		if s.n == 0 {
			sep = "["
		}
		s.buf = append(s.buf, sep...)
	}
	s.buf = j.append(s.buf)
	if !s.array {
		s.buf = append(s.buf, '\n')
	}
	s.n++
	_, err := s.w.Write(s.buf)
	return err
}

func (s *taskStream) end() error {
	switch {
	case !s.array:
	case s.n == 0:
		_, _ = s.w.WriteString("[]\n") // Flush tells
	default:
		_, _ = s.w.WriteString("]\n")
	}
	return s.w.Flush()
}
