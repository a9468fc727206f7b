package monitor

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/form"
)

const (
	mostSecrets = 256
	// shortSecret is the length below which a text is masked only where it stands
	// under its own name: elsewhere it may be any word.
	shortSecret = 6
)

// secrets are what a person typed into fields that a schema calls secret, and
// sent to one server. They are kept in memory alone, the newest of them, so that
// the wire log and the server's refusals can be shown without them. It has a
// lock of its own: connections ask it about every message.
type secrets struct {
	mu   sync.Mutex
	list []form.Member
}

// add takes note of secrets; it is called before they are sent.
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
}

func (x *secrets) all() []form.Member {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.list // never written to, only replaced
}

// texts are the secrets that are looked for in any text.
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
	for _, t := range texts(x.all()) {
		s = strings.ReplaceAll(s, t, form.Masked)
	}
	return s
}

// message is a message without secrets: what stands under the name of one and
// is its value, whatever it is, and what holds its text, in whatever spelling.
// b itself is not changed.
func (x *secrets) message(b []byte) []byte {
	list := x.all()
	if len(list) == 0 {
		return b
	}
	long := texts(list)
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
		b = bytes.ReplaceAll(b, []byte(s), []byte(form.Masked))
	}
	return b
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

// refusal is an error of a server without the secrets that it quotes.
func (x *secrets) refusal(err error) error {
	if err == nil || len(x.all()) == 0 {
		return err
	}
	var rpc *taskmodel.RPCError
	if errors.As(err, &rpc) {
		rpc.Message, rpc.Data = x.text(rpc.Message), x.message(rpc.Data)
	}
	if said := err.Error(); x.text(said) != said {
		return &unquoted{err, x.text(said)}
	}
	return err
}

// unquoted is an error with other words.
type unquoted struct {
	error
	words string
}

func (u *unquoted) Error() string { return u.words }
func (u *unquoted) Unwrap() error { return u.error }

// hide takes note of what is secret in an answer to a schema, and gives the
// answer as it may be kept.
func (s *server) hide(schema, content json.RawMessage) json.RawMessage {
	if len(content) == 0 || len(schema) == 0 {
		return content
	}
	found, rest, err := form.SplitSecrets(schema, content)
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
