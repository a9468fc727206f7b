package faulty

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A link is one connection's messages on their way through the rules. It
// remembers which request an id stands for, in both directions. It is safe for
// concurrent use.
type link struct {
	book *book

	mu      sync.Mutex
	ours    map[string]string // methods of the client's requests, by raw id
	theirs  map[string]string // methods of the server's requests, by raw id
	swapped *once             // held back until the next message out
}

func newLink(k *book) *link {
	return &link{book: k, ours: map[string]string{}, theirs: map[string]string{}}
}

// An act is one thing that a carrier is to do.
type act struct {
	do    string        // "deliver", or a connection's or process's action
	bytes []byte        // deliver: what
	after time.Duration // deliver: how much later, while others go on
	slow  time.Duration // deliver: between two bytes
	reply bool          // deliver, never: the message is a response
	rule  *rule
	once  *once // deliver: only if nobody did it yet
}

// A once is a delivery that two may want to make.
type once struct {
	mu   sync.Mutex
	done bool
	act  act
}

// take reports whether the caller is the first.
func (o *once) take() bool {
	if o == nil {
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.done
	o.done = true
	return !was
}

type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

// place is the point and method of a message.
func (l *link) place(b []byte, fromClient bool) (point, method string) {
	var m envelope
	if json.Unmarshal(b, &m) != nil {
		return "", ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	asked, answered := l.theirs, l.ours
	names := [3]string{"question", "notification", "response"}
	if fromClient {
		asked, answered = l.ours, l.theirs
		names = [3]string{"request", "told", "answer"}
	}
	switch {
	case m.Method != "" && m.ID != nil:
		asked[string(m.ID)] = m.Method
		return names[0], m.Method
	case m.Method != "":
		return names[1], m.Method
	}
	method = answered[string(m.ID)]
	delete(answered, string(m.ID))
	return names[2], method
}

// incoming is a message of the client, outgoing one of the server; each gives
// what is to be done instead of handing it on.
func (l *link) incoming(b []byte) []act { return l.through(b, true) }
func (l *link) outgoing(b []byte) []act { return l.through(b, false) }

func (l *link) through(b []byte, fromClient bool) []act {
	point, method := l.place(b, fromClient)
	reply := point == "response"
	if l.book.overhear != nil {
		l.book.overhear(point, method, b)
	}
	plain := act{do: "deliver", bytes: b, reply: reply}
	r := l.book.due(point, method, b)
	acts := []act{plain}
	if r != nil {
		acts = l.apply(r, plain)
	}
	if !fromClient {
		acts = l.release(acts, r)
	}
	return acts
}

// release lets a message that was held back follow.
func (l *link) release(acts []act, r *rule) []act {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r != nil && r.action == "swap" {
		return acts
	}
	if held := l.swapped; held != nil {
		l.swapped = nil
		a := held.act
		a.once = held
		acts = append(acts, a)
	}
	return acts
}

// apply is one rule on one message.
func (l *link) apply(r *rule, a act) []act {
	a.rule = r
	change := func(b []byte, err error) []act {
		if err == nil {
			a.bytes = b
		}
		return []act{a}
	}
	switch r.action {
	case "late":
		a.after = r.wait
		return []act{a}
	case "never":
		a.do = "never"
		return []act{a}
	case "twice":
		return []act{a, a}
	case "repeat":
		var out []act
		for range r.number {
			out = append(out, a)
		}
		return out
	case "swap":
		held := &once{act: a}
		l.mu.Lock()
		l.swapped = held
		l.mu.Unlock()
		a.after, a.once = 2*time.Second, held
		return []act{a}
	case "id":
		return change(setPath(a.bytes, "id", json.RawMessage(r.arg)))
	case "error":
		code, message, _ := strings.Cut(r.arg, " ")
		if message == "" {
			message = "scripted error"
		}
		b, err := setPath(a.bytes, "error", fmt.Appendf(nil, `{"code":%s,"message":%s}`, code, quote(message)))
		if err == nil {
			b, err = unsetPath(b, "result")
		}
		return change(b, err)
	case "set":
		path, value, _ := strings.Cut(r.arg, " ")
		return change(setPath(a.bytes, path, json.RawMessage(value)))
	case "unset":
		return change(unsetPath(a.bytes, r.arg))
	case "broken":
		a.bytes = a.bytes[:len(a.bytes)/2]
		return []act{a}
	case "text":
		a.bytes = []byte(r.arg)
		return []act{a}
	case "before":
		noise := act{do: "deliver", bytes: []byte(r.arg), rule: r}
		return []act{noise, a}
	case "big":
		if n := r.number - len(a.bytes) - 12; n > 0 {
			return change(setPath(a.bytes, "padding", json.RawMessage(quote(strings.Repeat("x", n)))))
		}
		return []act{a}
	case "slowly":
		a.slow = r.wait
		return []act{a}
	case "clock", "stderr":
		return []act{{do: r.action, rule: r}, a}
	default:
		return []act{{do: r.action, rule: r, reply: a.reply}}
	}
}

func quote(s string) []byte {
	b, _ := json.Marshal(s)
	return b
}

// setPath puts a value at a path of names and array indexes, result.tasks.0.ttl.
func setPath(b []byte, path string, value json.RawMessage) ([]byte, error) {
	return edit(b, strings.Split(path, "."), value)
}

func unsetPath(b []byte, path string) ([]byte, error) { return edit(b, strings.Split(path, "."), nil) }

// edit changes one value and leaves the rest as it stands but for the order of
// the members on the way.
func edit(b []byte, path []string, value json.RawMessage) ([]byte, error) {
	if len(path) == 0 {
		if !json.Valid(value) {
			return nil, fmt.Errorf("%q is no JSON", value)
		}
		return value, nil
	}
	if t := bytes.TrimSpace(b); len(t) > 0 && t[0] == '[' {
		var list []json.RawMessage
		if err := json.Unmarshal(b, &list); err != nil {
			return nil, err
		}
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(list) {
			return nil, fmt.Errorf("no element %s", path[0])
		}
		if list[i], err = edit(list[i], path[1:], value); err != nil {
			return nil, err
		}
		return json.Marshal(list)
	}
	m := map[string]json.RawMessage{}
	if len(b) > 0 {
		if err := json.Unmarshal(b, &m); err != nil {
			return nil, err
		}
	}
	if value == nil && len(path) == 1 {
		delete(m, path[0])
		return json.Marshal(m)
	}
	inner, err := edit(m[path[0]], path[1:], value)
	if err != nil {
		return nil, err
	}
	m[path[0]] = inner
	return json.Marshal(m)
}
