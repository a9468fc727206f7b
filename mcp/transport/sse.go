package transport

import (
	"bufio"
	"bytes"
	"io"
	"math"
	"time"
)

// An event is one server-sent event (WHATWG HTML, section 9.2.6). This parser
// is our own because those at hand do not give out the retry field, which a
// client must respect (2025-11-25 basic/transports), and end the whole stream
// at an event that is too long.
type event struct {
	name  string // "" is "message"
	id    string
	hasID bool
	data  []byte // nil when there was no data line; the taker owns it
	retry time.Duration
	// cut: the stream ended before the empty line that completes the event.
	cut bool
}

type eventFunc struct {
	event   func(event)
	comment func([]byte)             // a comment line, without its colon
	long    func(head []byte, n int) // an event with more data than allowed
}

// eachEvent reads r to its end. limit bounds the data of one event, in bytes. A
// clean end is nil. An event is handed on as soon as its empty line is there,
// also where that line ends in a lone CR whose successor has not come yet.
func eachEvent(r io.Reader, limit int64, f eventFunc) error {
	p := eventParser{limit: int(min(limit, math.MaxInt32)), eventFunc: f, retry: -1}
	br := bufio.NewReaderSize(r, 64<<10)
	for {
		if _, err := br.Peek(1); err != nil {
			p.end(err == io.EOF)
			return ignoreEOF(err)
		}
		chunk, _ := br.Peek(br.Buffered())
		p.feed(chunk)
		_, _ = br.Discard(len(chunk))
	}
}

type eventParser struct {
	limit int
	eventFunc

	line   []byte // the current line, as far as it has come
	over   int    // bytes of the current line that were dropped
	skipLF bool   // the last byte was a CR
	begun  bool   // past the place where a byte order mark may stand

	name    string
	id      string
	hasID   bool
	retry   time.Duration
	data    []byte
	hasData bool
	tooLong bool // then data is but the beginning
	dropped int  // bytes of data that were not kept
}

func (p *eventParser) feed(b []byte) {
	for len(b) > 0 {
		if p.skipLF {
			p.skipLF = false
			if b[0] == '\n' {
				b = b[1:]
				continue
			}
		}
		end := bytes.IndexByte(b, '\n')
		search := b
		if end >= 0 {
			search = b[:end]
		}
		if cr := bytes.IndexByte(search, '\r'); cr >= 0 {
			end = cr
		}
		if end < 0 {
			p.keep(b)
			return
		}
		p.keep(b[:end])
		p.skipLF = b[end] == '\r'
		b = b[end+1:]
		p.endLine()
	}
}

// keep adds to the current line, up to the limit and room for the field's name.
func (p *eventParser) keep(b []byte) {
	if room := p.limit + 64 - len(p.line); len(b) > room {
		p.over += len(b) - room
		b = b[:room]
	}
	p.line = append(p.line, b...)
}

func (p *eventParser) endLine() {
	line, over := p.line, p.over
	p.over = 0
	if !p.begun {
		line = bytes.TrimPrefix(line, []byte("\xEF\xBB\xBF"))
		p.begun = true
	}
	if len(line) == 0 {
		p.dispatch(false)
		p.line = p.line[:0]
		return
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "":
		if line[0] == ':' && p.comment != nil {
			p.comment(bytes.Clone(line[1:min(len(line), 1<<10)]))
		}
	case "event":
		p.name = string(value[:min(len(value), 256)])
	case "id":
		if bytes.IndexByte(value, 0) < 0 && over == 0 && len(value) <= 8<<10 {
			p.id, p.hasID = string(value), true
		}
	case "retry":
		if ms, ok := digits(value); ok {
			p.retry = time.Duration(ms) * time.Millisecond
		}
	case "data":
		p.addData(value, over)
		return
	}
	p.line = p.line[:0]
}

func (p *eventParser) addData(value []byte, over int) {
	if room := p.limit - len(p.data); p.tooLong || over > 0 || len(value)+1 > room {
		p.tooLong = true
		p.dropped += len(value) + over
		if len(p.data) == 0 {
			// The beginning may tell whose answer it is.
			p.data = append(p.data, value[:min(len(value), lineBuffer)]...)
			p.dropped -= len(p.data)
		}
		p.line = p.line[:0]
		return
	}
	if !p.hasData && len(value) > lineBuffer {
		// A big event in one line: its buffer becomes the data, uncopied.
		p.data, p.line = value, nil
	} else {
		if p.hasData {
			p.data = append(p.data, '\n')
		}
		p.data = append(p.data, value...)
		p.line = p.line[:0]
	}
	p.hasData = true
}

// digits reads a number of milliseconds; one that is absurd is none.
func digits(b []byte) (n int64, ok bool) {
	for _, c := range b {
		if c < '0' || c > '9' || n > int64(24*time.Hour/time.Millisecond) {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, len(b) > 0
}

func (p *eventParser) dispatch(cut bool) {
	ev := event{name: p.name, id: p.id, hasID: p.hasID, retry: p.retry, cut: cut}
	if p.tooLong {
		if p.long != nil {
			p.long(p.data[:min(len(p.data), lineBuffer)], len(p.data)+p.dropped)
		}
	} else if p.hasData {
		ev.data = p.data
		if ev.data == nil {
			ev.data = []byte{}
		}
	}
	if ev.hasID || ev.retry >= 0 || ev.data != nil {
		p.event(ev)
	}
	p.name, p.id, p.hasID, p.retry = "", "", false, -1
	p.data, p.hasData, p.dropped, p.tooLong = nil, false, 0, false
}

// end hands on what a stream left unfinished. The standard drops it; a whole
// JSON text in it is still an answer, which the taker decides.
func (p *eventParser) end(clean bool) {
	if clean && len(p.line) > 0 {
		p.endLine()
	}
	if clean && p.hasData && !p.tooLong {
		p.dispatch(true)
	}
}
