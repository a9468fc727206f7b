package tap

import "bytes"

// An eventSplitter finds the events of a text/event-stream in its runs. Without
// hold, bytes pass as they come and events are only looked at. With it, whole
// events pass, as look gives them; an event's beginning is of no use to an agent
// without its end, so nothing comes later by that.
type eventSplitter struct {
	hold bool
	look func(e streamEvent) []byte // what the agent gets of an event

	raw  []byte // of the event that is not over yet
	line int    // where its present line begins in raw
	long bool   // more than maxHeld: passed unread, to its end
	cr   bool   // lines end in lone CRs, which nobody sends: passed unread
}

// A streamEvent is one event, with its bytes.
type streamEvent struct {
	name  string
	id    []byte // the line, when there is one
	data  []byte
	bytes []byte
}

// feed takes a run and gives what goes on.
func (s *eventSplitter) feed(b []byte) []byte {
	if s.cr {
		return b
	}
	var out []byte
	for rest := b; len(rest) > 0; {
		i := bytes.IndexByte(rest, '\n') + 1
		n := i
		if i == 0 {
			n = len(rest)
		}
		s.raw = append(s.raw, rest[:n]...)
		rest = rest[n:]
		if len(s.raw) > maxHeld {
			s.long = true
		}
		if s.long && s.hold {
			out = append(out, s.raw[s.line:]...)
		}
		if i == 0 {
			if s.long {
				s.raw, s.line = s.raw[:0], 0
			} else if l := s.raw[s.line:]; bytes.IndexByte(l, '\r') >= 0 && bytes.IndexByte(l, '\r') < len(l)-1 {
				s.cr = true
				if s.hold {
					out = append(out, s.raw...)
				}
			}
			break
		}
		blank := len(bytes.TrimRight(s.raw[s.line:], "\r\n")) == 0
		s.line = len(s.raw)
		switch {
		case s.long:
			s.raw, s.line, s.long = nil, 0, !blank
		case blank:
			e := s.look(parseEvent(s.raw))
			if s.hold {
				out = append(out, e...)
			}
			s.raw, s.line = nil, 0
		}
	}
	if !s.hold {
		return b
	}
	return out
}

// end gives what is left of a stream that has ended.
func (s *eventSplitter) end() []byte {
	if !s.hold || s.cr {
		return nil
	}
	return s.raw
}

func parseEvent(b []byte) streamEvent {
	e := streamEvent{bytes: b}
	for len(b) > 0 {
		line := b
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			line, b = b[:i], b[i+1:]
		} else {
			b = nil
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			e.name = string(value)
		case "id":
			e.id = line
		case "data":
			if e.data != nil {
				e.data = append(e.data, '\n')
			}
			e.data = append(e.data, value...)
		}
	}
	return e
}
