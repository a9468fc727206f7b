package faulty

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A rule is one line of a script.
type rule struct {
	text   string
	point  string
	method string // "" is any
	holds  string // a text that the message has in it; "" is any message
	nth    int    // from which match on
	times  int    // how many; -1 all
	action string
	arg    string
	wait   time.Duration // the argument, of actions that take a duration
	number int           // the argument, of those that take a number

	seen int // matches so far
}

// takes is what kind of argument an action takes.
type takes int

const (
	nothing takes = iota
	duration
	number
	words
)

// actions are what can happen, with what each takes as an argument.
var actions = map[string]takes{
	// With one message.
	"late":   duration, // it comes so much later; others overtake it
	"never":  nothing,  // it is lost
	"twice":  nothing,
	"repeat": number,   // it comes so many times
	"swap":   nothing,  // it comes after the next one, or after two seconds
	"id":     words,    // a response under this id, as JSON
	"error":  words,    // CODE [MESSAGE] instead of the response
	"set":    words,    // PATH JSON: one field is something else, result.ttl -1
	"unset":  words,    // PATH: one field is missing
	"broken": nothing,  // cut in the middle
	"text":   words,    // this text instead
	"before": words,    // this text, then the message
	"big":    number,   // padded to so many bytes
	"slowly": duration, // byte by byte, so much between two

	// With the connection.
	"close":     nothing,  // ended in good order, without the message
	"reset":     nothing,  // torn down (HTTP: RST; a process: SIGKILL)
	"halfclose": nothing,  // HTTP: half the answer, then FIN; else: nothing more comes out
	"crash":     number,   // a process: exit with this code; else as reset, and all tasks are lost
	"hang":      nothing,  // from now on nothing comes out and nothing is read
	"restart":   words,    // keep | lose: sessions end, the tasks stay or not
	"clock":     duration, // the server's clock steps by this, then the message

	// With a process only.
	"ignore":     nothing, // eof: the end of input is not heard
	"grandchild": nothing, // start: leaves a child that holds stdout and ignores SIGTERM
	"stderr":     number,  // so many bytes on stderr, then the message

	// With HTTP only, at post, get and delete.
	"status":      words,    // CODE [NAME=VALUE …] [BODY]
	"type":        words,    // MEDIATYPE [BODY]: status 200 with that
	"gzip":        nothing,  // the answer as gzip, cut in the middle
	"slowheaders": duration, // the header takes so long to come
	"empty":       nothing,  // status 200 and no body
}

var points = []string{"request", "response", "notification", "question", "answer", "told", "start", "eof", "post", "get", "delete"}

// parse reads a script.
func parse(script string) ([]*rule, error) {
	var rules []*rule
	for _, line := range lines(script) {
		r, err := parseRule(line)
		if err != nil {
			return nil, fmt.Errorf("fault script, %q: %w", line, err)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// lines splits at line ends and semicolons that are in no quotes; # at the
// beginning of a line is a comment.
func lines(script string) []string {
	var out []string
	quoted, escaped, from := false, false, 0
	flush := func(to int) {
		if l := strings.TrimSpace(script[from:to]); l != "" && !strings.HasPrefix(l, "#") {
			out = append(out, l)
		}
		from = to + 1
	}
	for i := range len(script) {
		switch c := script[i]; {
		case escaped:
			escaped = false
		case c == '\\':
			escaped = quoted
		case c == '"':
			quoted = !quoted
		case c == '\n':
			quoted = false
			flush(i)
		case c == ';' && !quoted:
			flush(i)
		}
	}
	flush(len(script))
	return out
}

func parseRule(line string) (*rule, error) {
	point, rest, _ := strings.Cut(line, " ")
	action, arg, _ := strings.Cut(strings.TrimSpace(rest), " ")
	r := &rule{text: line, nth: 1, times: 1, action: action, arg: strings.TrimSpace(arg)}
	if at, times, ok := strings.Cut(point, "*"); ok && !strings.HasSuffix(at, ":") {
		point, r.times = at, -1
		if times != "" {
			n, err := strconv.Atoi(times)
			if err != nil || n < 1 {
				return nil, fmt.Errorf("%q is no number of times", times)
			}
			r.times = n
		}
	}
	if at, nth, ok := strings.Cut(point, "#"); ok {
		n, err := strconv.Atoi(nth)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is no count", nth)
		}
		point, r.nth = at, n
	}
	point, r.holds, _ = strings.Cut(point, "~")
	r.point, r.method, _ = strings.Cut(point, ":")
	if r.method == "*" {
		r.method = ""
	}
	if !slices.Contains(points, r.point) {
		return nil, fmt.Errorf("no point %q; there are %s", r.point, strings.Join(points, ", "))
	}
	kind, ok := actions[action]
	if !ok {
		return nil, fmt.Errorf("no action %q", action)
	}
	var err error
	switch kind {
	case duration:
		if r.wait, err = time.ParseDuration(r.arg); err != nil {
			return nil, fmt.Errorf("%s takes a duration: %w", action, err)
		}
	case number:
		if r.arg != "" || action != "crash" {
			if r.number, err = strconv.Atoi(r.arg); err != nil {
				return nil, fmt.Errorf("%s takes a number: %w", action, err)
			}
		}
	case words:
		if r.arg == "" {
			return nil, fmt.Errorf("%s takes an argument", action)
		}
	}
	return r, nil
}

// A book is the rules of one server and what they have done. It is safe for
// concurrent use.
type book struct {
	mu    sync.Mutex
	rules []*rule
	fired []string

	overhear func(point, method string, b []byte) // nil: nobody
}

// add puts further rules behind those that are there.
func (k *book) add(script string) error {
	rules, err := parse(script)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rules = append(k.rules, rules...)
	return nil
}

func (k *book) clear() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rules = nil
}

func (k *book) log() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.fired)
}

// due counts a message at a point and gives the rule that acts, nil for none.
// The rule's counters must not be looked at by the caller.
func (k *book) due(point, method string, message []byte) *rule {
	k.mu.Lock()
	defer k.mu.Unlock()
	var act *rule
	for _, r := range k.rules {
		if r.point != point || r.method != "" && r.method != method || !bytes.Contains(message, []byte(r.holds)) {
			continue
		}
		r.seen++
		if act == nil && r.seen >= r.nth && (r.times < 0 || r.seen < r.nth+r.times) {
			act = r
		}
	}
	if act != nil {
		k.fired = append(k.fired, act.text)
	}
	return act
}

// all is due for the points at which every rule acts, not the first alone.
func (k *book) all(point string) []*rule {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []*rule
	for _, r := range k.rules {
		if r.point != point {
			continue
		}
		r.seen++
		if r.seen >= r.nth && (r.times < 0 || r.seen < r.nth+r.times) {
			out = append(out, r)
			k.fired = append(k.fired, r.text)
		}
	}
	return out
}
