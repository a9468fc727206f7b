package monitor

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/form"
)

const (
	mostSecrets = 256
	mostSigned  = 32
	// shortSecret is the length below which a text is masked only where it stands
	// under its own name: elsewhere it may be any word.
	shortSecret = 6
)

// secrets are what nobody is to see of one server: what a person typed into
// fields that a schema calls secret and sent (the newest of them, in memory
// alone), what its configuration holds and what signs its requests. Servers
// quote them. It has a lock of its own: connections ask it about every message.
type secrets struct {
	mu     sync.Mutex
	list   []form.Member // typed
	config []string
	signed []string // the newest of what requests were signed with
	long   []string // all texts that are looked for, the longest first
}

// add takes note of secrets that are typed; it is called before they are sent.
func (x *secrets) add(ms []form.Member) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, m := range ms {
		known := false
		for _, old := range x.list {
			known = known || old.Name == m.Name && bytes.Equal(old.Value, m.Value)
		}
		if !known {
			x.list = append(x.list[:len(x.list):len(x.list)], m)
		}
	}
	x.list = x.list[max(0, len(x.list)-mostSecrets):]
	x.settle()
}

// configured takes note of what the configuration holds.
func (x *secrets) configured(words []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.config = words
	x.settle()
}

// signs takes note of what a request is signed with, as "Bearer …"; it is
// called before the request goes out.
func (x *secrets) signs(value string) {
	if _, token, ok := strings.Cut(value, " "); ok {
		value = token
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if slices.Contains(x.signed, value) {
		return
	}
	x.signed = append(x.signed, value)
	x.signed = x.signed[max(0, len(x.signed)-mostSigned):]
	x.settle()
}

func (x *secrets) settle() {
	long := texts(x.list)
	for _, words := range [][]string{x.config, x.signed} {
		for _, w := range words {
			if len(w) >= shortSecret {
				long = append(long, w)
			}
		}
	}
	slices.SortStableFunc(long, func(a, b string) int { return len(b) - len(a) }) // one may hold another
	x.long = slices.Compact(long)
}

// all are what was typed, and all texts that are looked for. They are never
// written to, only replaced.
func (x *secrets) all() ([]form.Member, []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.list, x.long
}

func (x *secrets) none() bool {
	list, long := x.all()
	return len(list) == 0 && len(long) == 0
}

// texts are the typed secrets that are looked for in any text.
func texts(list []form.Member) []string {
	var out []string
	var from func(v any)
	from = func(v any) {
		switch v := v.(type) {
		case string:
			if len(v) >= shortSecret {
				out = append(out, v)
			}
		case []any:
			for _, e := range v {
				from(e)
			}
		case map[string]any:
			for _, e := range v {
				from(e)
			}
		}
	}
	for _, m := range list {
		from(value(m.Value))
	}
	return out
}

func value(raw []byte) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}

// text is a text without secrets.
func (x *secrets) text(s string) string {
	_, long := x.all()
	for _, t := range long {
		s = strings.ReplaceAll(s, t, form.Masked)
	}
	return s
}

// message is a message without secrets: what stands under the name of one and
// is its value, whatever it is, and what holds its text, in whatever spelling.
// b itself is not changed.
func (x *secrets) message(b []byte) []byte {
	list, long := x.all()
	if len(list) == 0 && (len(long) == 0 || !quoted(b, long)) {
		return b
	}
	byName := map[string][]any{}
	for _, m := range list {
		byName[m.Name] = append(byName[m.Name], value(m.Value))
	}
	var out []byte // nil: nothing was masked yet
	done := 0      // of b, in out
	put := func(from, to int, with []byte) {
		out = append(append(out, b[done:from]...), with...)
		done = to
	}
	for i := 0; i < len(b); {
		if b[i] != '"' {
			i++
			continue
		}
		end, plain := stringEnd(b, i)
		if end < 0 {
			break
		}
		text := ""
		if plain {
			text = string(b[i+1 : end-1])
		} else if json.Unmarshal(b[i:end], &text) != nil {
			i = end
			continue
		}
		if at := valueAfter(b, end); at > 0 && byName[text] != nil {
			d := json.NewDecoder(bytes.NewReader(b[at:]))
			d.UseNumber()
			var v any
			if d.Decode(&v) == nil && is(v, byName[text]) {
				i = at + int(d.InputOffset())
				put(at, i, []byte(`"`+form.Masked+`"`))
				continue
			}
		}
		masked := text
		for _, s := range long {
			masked = strings.ReplaceAll(masked, s, form.Masked)
		}
		if masked != text {
			if said, err := json.Marshal(masked); err == nil {
				put(i, end, said)
			}
		}
		i = end
	}
	if out != nil {
		b = append(out, b[done:]...)
	}
	for _, s := range long { // what is no JSON
		if !bytes.Contains(b, []byte(s)) {
			continue
		}
		b = bytes.ReplaceAll(b, []byte(s), []byte(form.Masked))
	}
	return b
}

// quoted reports whether b may hold one of the texts: as it is, or written with
// escapes.
func quoted(b []byte, long []string) bool {
	return bytes.IndexByte(b, '\\') >= 0 || slices.ContainsFunc(long, func(s string) bool { return bytes.Contains(b, []byte(s)) })
}

func is(v any, any []any) bool {
	for _, s := range any {
		if reflect.DeepEqual(v, s) {
			return true
		}
	}
	return false
}

// stringEnd is where the string that begins at i ends, -1 when it does not;
// plain says that it has no escapes.
func stringEnd(b []byte, i int) (end int, plain bool) {
	plain = true
	for j := i + 1; j < len(b); j++ {
		switch b[j] {
		case '\\':
			plain = false
			j++
		case '"':
			return j + 1, plain
		}
	}
	return -1, plain
}

// valueAfter is where the value begins whose name ends at i, 0 when there is
// none.
func valueAfter(b []byte, i int) int {
	space := func() {
		for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
			i++
		}
	}
	space()
	if i >= len(b) || b[i] != ':' {
		return 0
	}
	i++
	space()
	return i
}

// refusal is an error of a server without the secrets that it quotes. The error
// itself is not changed: others may hold it.
func (x *secrets) refusal(err error) error {
	if err == nil || x.none() {
		return err
	}
	u := &unquoted{error: err, words: x.text(err.Error())}
	quotes := u.words != err.Error()
	var rpc *taskmodel.RPCError
	if errors.As(err, &rpc) {
		u.rpc = &taskmodel.RPCError{Code: rpc.Code, Message: x.text(rpc.Message), Data: x.message(rpc.Data)}
		quotes = quotes || u.rpc.Message != rpc.Message || !bytes.Equal(u.rpc.Data, rpc.Data)
	}
	if !quotes {
		return err
	}
	return u
}

// unquoted is an error in other words.
type unquoted struct {
	error
	words string
	rpc   *taskmodel.RPCError
}

func (u *unquoted) Error() string { return u.words }
func (u *unquoted) Unwrap() error { return u.error }

// As gives the server's own error in other words, too.
func (u *unquoted) As(target any) bool {
	t, ok := target.(**taskmodel.RPCError)
	if ok && u.rpc != nil {
		*t = u.rpc
		return true
	}
	return false
}

// hide takes note of what is secret in an answer to a schema, and gives the
// answer as it may be kept.
func (s *server) hide(schema, content json.RawMessage) json.RawMessage {
	if len(content) == 0 || len(schema) == 0 {
		return content
	}
	found, rest, err := form.SplitSecrets(schema, content, s.m.o.Schema)
	if err != nil {
		return content // there is no form then: it was written as JSON
	}
	s.secrets.add(found)
	return rest
}

// hideArgs does the same for the arguments of a call, where the tool is known.
// It does not run on the loop.
func (s *server) hideArgs(tool string, args json.RawMessage) json.RawMessage {
	var schema json.RawMessage
	_ = s.m.do(s.m.ctx, func() { schema = s.schema(tool) })
	return s.hide(schema, args)
}

// schema is that of a tool's arguments, nil when it is not known.
func (s *server) schema(tool string) json.RawMessage {
	for _, t := range s.tools {
		if t.Name == tool {
			return t.InputSchema
		}
	}
	return nil
}
