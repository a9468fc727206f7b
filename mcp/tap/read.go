package tap

import (
	"bytes"
	"runtime"
	"strings"
	"time"

	"mcptasks/mcp"
	"mcptasks/mcp/jsonrpc"
)

// maxRead is the longest message that is read; longer ones pass unread.
const maxRead = 16 << 20

// A splitter makes lines of a stream's runs.
type splitter struct {
	part []byte
	skip bool // to the line's end
}

// feed calls line with each whole line; the bytes are the callee's.
func (s *splitter) feed(b []byte, gap bool, line func([]byte)) {
	if gap {
		s.part, s.skip = nil, true
	}
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			if !s.skip {
				if len(s.part)+len(b) > maxRead {
					s.part, s.skip = nil, true
					return
				}
				s.part = append(s.part, b...)
			}
			return
		}
		if !s.skip {
			l := b[:i:i]
			if len(s.part) > 0 {
				l = append(s.part, l...)
			}
			line(l)
		}
		s.part, s.skip, b = nil, false, b[i+1:]
	}
}

// end calls line with a last line that was not ended.
func (s *splitter) end(line func([]byte)) {
	if len(s.part) > 0 && !s.skip {
		line(s.part)
	}
	s.part = nil
}

// reading is the goroutine that reads along until the queue is closed.
func (t *tap) reading() {
	var items []piece
	for {
		var ok bool
		items, ok = t.q.take(items)
		for i := range items {
			t.heed(&items[i])
			runtime.Gosched() // what passes goes before what is read
			items[i] = piece{}
		}
		if !ok {
			return
		}
		if len(items) == 0 {
			<-t.q.wake
		}
	}
}

// heed takes one piece.
func (t *tap) heed(p *piece) {
	switch {
	case p.do != nil:
		p.do()
	case p.whole:
		t.text(p, p.b)
	default:
		s := &t.split[p.from]
		s.feed(p.b, p.gap, func(l []byte) { t.text(p, l) })
	}
}

// text takes one text that may be a message, or several.
func (t *tap) text(p *piece, b []byte) {
	b = bytes.TrimSpace(bytes.TrimPrefix(b, []byte("\xEF\xBB\xBF")))
	if len(b) == 0 {
		return
	}
	if b[0] == '[' {
		list, _ := jsonrpc.Split(b)
		for _, v := range list {
			t.message(p, v)
		}
		return
	}
	t.message(p, b)
}

// message reads one message and has what it says recorded.
func (t *tap) message(p *piece, b []byte) {
	if b[0] != '{' {
		return
	}
	m, err := jsonrpc.Decode(b, 0)
	if err != nil || m.Version == "" && m.Kind != jsonrpc.KindResponse {
		return
	}
	over := mcp.Overheard{ToServer: p.from == agent, Own: p.own, At: p.at, Message: m}
	if over.At.IsZero() {
		over.At = time.Now()
	}
	if p.from == agent && p.over != nil && m.Kind == jsonrpc.KindRequest {
		p.over.on = m.ID
	}
	if p.conv != nil {
		over.Conv, over.Exchange, over.On = p.conv.name, p.over.exchange, p.over.on
	}
	for _, h := range t.obs.Read(over) {
		if h.Kind == mcp.HeardQuestion && t.answer != nil {
			t.answer.asked(h, m)
		}
		t.rec.hear(h)
		if t.answer != nil {
			t.answer.heard(h)
		}
	}
	if p.from == server && m.Kind == jsonrpc.KindResponse && t.mine(m.ID) {
		t.answered(m)
	}
}

// newID is an id that none of the agent's can meet.
func (t *tap) newID() jsonrpc.ID {
	n := t.seq.Add(1)
	return jsonrpc.StringID(t.tag + jsonrpc.IntID(n).String())
}

// mine reports whether an id is ours.
func (t *tap) mine(id jsonrpc.ID) bool { return strings.HasPrefix(id.Text(), t.tag) }

// expecting reports whether something of ours may be among what the server
// sends.
func (t *tap) expecting() bool {
	return t.open.Load() > 0 || t.answer != nil && t.answer.taking()
}

// look is downstream.look: it takes answers to us out of the stream.
func (t *tap) look(b []byte) []byte { return t.lookAt(b, nil, nil) }

// lookAt gives what the agent is to get of a message of the server: nothing
// where it is for us alone.
func (t *tap) lookAt(b []byte, c *conv, r *route) []byte {
	if bytes.Contains(b, []byte(t.tag)) {
		m, err := jsonrpc.Decode(bytes.TrimSpace(b), 0)
		if err == nil && m.Kind == jsonrpc.KindResponse && t.mine(m.ID) {
			t.q.put(piece{from: server, whole: true, own: true, conv: c, over: r, b: b}, true)
			return nil
		}
	}
	if t.answer != nil {
		return t.answer.look(b, c, r)
	}
	return b
}
