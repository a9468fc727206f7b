package board

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds on expressions, far beyond what anybody types.
const (
	maxFilter = 4096 // bytes
	maxTerms  = 64
)

// ParseFilter reads a filter expression (see Filter). Errors are *FilterError.
func ParseFilter(text string) (*Filter, error) {
	_, f, err := parseFilter(text)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// ParseFilterSoFar reads an expression that is being typed: with an error come
// the terms before the one at fault, and the text that they stand for.
func ParseFilterSoFar(text string) (good string, f *Filter, err error) {
	return parseFilter(text)
}

func parseFilter(text string) (string, *Filter, error) {
	if len(text) > maxFilter {
		return "", &Filter{}, &FilterError{Column: 1, Message: fmt.Sprintf("the filter is longer than %d bytes", maxFilter)}
	}
	if !utf8.ValidString(text) {
		return "", &Filter{}, &FilterError{Column: 1, Message: "the filter is no valid text"}
	}
	p := &filterParser{text: text}
	f := &Filter{}
	for {
		good := strings.TrimSpace(text[:p.at])
		p.spaces()
		if p.done() {
			return good, f, nil
		}
		if len(f.terms) == maxTerms {
			return good, f, p.fail(p.at, "there are more than %d terms", maxTerms)
		}
		t, err := p.term()
		if err != nil {
			return good, f, err
		}
		f.terms = append(f.terms, t)
	}
}

// MustParseFilter is ParseFilter for expressions in the program's own text.
func MustParseFilter(text string) *Filter {
	f, err := ParseFilter(text)
	if err != nil {
		panic(err)
	}
	return f
}

type filterParser struct {
	text string
	at   int
}

func (p *filterParser) done() bool { return p.at >= len(p.text) }

func (p *filterParser) peek() rune {
	r, _ := utf8.DecodeRuneInString(p.text[p.at:])
	return r
}

func (p *filterParser) next() rune {
	r, n := utf8.DecodeRuneInString(p.text[p.at:])
	p.at += n
	return r
}

func (p *filterParser) take(r rune) bool {
	if !p.done() && p.peek() == r {
		p.next()
		return true
	}
	return false
}

func (p *filterParser) spaces() {
	for !p.done() && unicode.IsSpace(p.peek()) {
		p.next()
	}
}

func (p *filterParser) fail(at int, format string, args ...any) error {
	return &FilterError{Column: utf8.RuneCountInString(p.text[:at]) + 1, Message: fmt.Sprintf(format, args...)}
}

func (p *filterParser) bangs() (not bool) {
	for p.take('!') {
		not = !not
	}
	return not
}

func (p *filterParser) term() (t term, err error) {
	t.not = p.bangs()
	start := p.at
	if name, ok := p.fieldName(); ok {
		i := slices.Index(fieldNames, strings.ToLower(name))
		if i <= 0 {
			near := ""
			if n := nearestField(strings.ToLower(name)); n != "" {
				near = fmt.Sprintf("did you mean %q? ", n+":")
			}
			return t, p.fail(start, "there is no field %q; %sthe fields are %s (put text with a colon in quotes)",
				name, near, strings.Join(fieldNames[1:], ", "))
		}
		t.field = field(i)
		if p.bangs() {
			t.not = !t.not
		}
	}
	for {
		a, err := p.alt(t.field)
		if err != nil {
			return t, err
		}
		t.alts = append(t.alts, a)
		if !p.take(',') {
			break
		}
	}
	if !p.done() && !unicode.IsSpace(p.peek()) {
		return t, p.fail(p.at, "there should be a space here")
	}
	return t, nil
}

// fieldName takes letters that a colon follows, and the colon.
func (p *filterParser) fieldName() (string, bool) {
	i := p.at
	for i < len(p.text) && (lower(p.text[i]) >= 'a' && lower(p.text[i]) <= 'z') {
		i++
	}
	if i == p.at || i >= len(p.text) || p.text[i] != ':' {
		return "", false
	}
	name := p.text[p.at:i]
	p.at = i + 1
	return name, true
}

// nearestField is the field that a name was probably meant to be: one of which it
// is the beginning, or which takes the same letters but for one or two of them in
// another place. "" when there is none.
func nearestField(name string) string {
	best, most := "", 3
	for _, f := range fieldNames[1:] {
		d := changes(name, f)
		if strings.HasPrefix(f, name) || strings.HasPrefix(name, f) {
			d = 1
		}
		if d < most && d < len(name) {
			best, most = f, d
		}
	}
	return best
}

// changes is how many letters have to be changed, added or left out, or two
// neighbours swapped, to make one word of another.
func changes(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			n := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				n = min(n, rows[i-2][j-2]+1)
			}
			rows[i][j] = n
		}
	}
	return rows[len(a)][len(b)]
}

func (p *filterParser) alt(f field) (alt, error) {
	start := p.at
	if p.done() || unicode.IsSpace(p.peek()) || p.peek() == ',' {
		return alt{}, p.fail(start, "%s", lacksValue(f))
	}
	switch {
	case p.peek() == '"':
		text, err := p.quoted()
		if err != nil {
			return alt{}, err
		}
		if text == "" && (f == anyField || f == fieldMsg) {
			return alt{}, p.fail(start, "there is nothing between the quotes")
		}
		if f.clocked() || f == fieldHas {
			return alt{}, p.fail(start, "%s: takes no quotes", f)
		}
		return bare(text, true), nil
	case p.peek() == '/' && !f.clocked() && f != fieldHas:
		return p.regex()
	}
	for !p.done() && !unicode.IsSpace(p.peek()) && p.peek() != ',' && p.peek() != '"' {
		p.next()
	}
	text := p.text[start:p.at]
	switch {
	case f.clocked():
		return p.duration(f, start, text)
	case f == fieldHas:
		i := slices.Index(hasNames, strings.ToLower(text))
		if i < 0 {
			return alt{}, p.fail(start, "has: takes %s", strings.Join(hasNames, ", "))
		}
		return alt{text: hasNames[i], has: 1 << i}, nil
	}
	return bare(text, false), nil
}

func lacksValue(f field) string {
	switch {
	case f == anyField:
		return "something to look for is missing here"
	case f.clocked():
		return fmt.Sprintf("%s: needs a time, as in %s:>5m", f, f)
	}
	return fmt.Sprintf("%s: needs a value", f)
}

func (p *filterParser) quoted() (string, error) {
	start := p.at
	p.next()
	var b strings.Builder
	for !p.done() {
		switch r := p.next(); r {
		case '"':
			return b.String(), nil
		case '\\':
			if p.done() {
				return "", p.fail(start, "the quotes are not closed")
			}
			b.WriteRune(p.next())
		default:
			b.WriteRune(r)
		}
	}
	return "", p.fail(start, "the quotes are not closed")
}

func (p *filterParser) regex() (alt, error) {
	start := p.at
	p.next()
	var b strings.Builder
	for !p.done() {
		switch r := p.next(); {
		case r == '/':
			text := b.String()
			expr, low := text, false
			if text == strings.ToLower(text) {
				if low = lowers(text); !low {
					expr = "(?i)" + text
				}
			}
			re, err := regexp.Compile(expr)
			if err != nil {
				return alt{}, p.fail(start, "not a regular expression: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
			}
			if text == "" {
				return alt{}, p.fail(start, "there is nothing between the slashes")
			}
			return alt{text: text, re: re, lower: low}, nil
		case r == '\\' && !p.done() && p.peek() == '/':
			b.WriteRune(p.next())
		case r == '\\' && !p.done():
			b.WriteRune(r)
			b.WriteRune(p.next())
		default:
			b.WriteRune(r)
		}
	}
	return alt{}, p.fail(start, "the regular expression lacks its closing /")
}

// bare is an alternative that is no regular expression.
func bare(text string, exact bool) alt {
	fold := strings.ToLower(text)
	return alt{text: text, fold: fold, needs: lettersIn(fold), exact: exact}
}

// lowers reports whether the expression finds in a text in lower case what it
// finds in the text itself without regard to case: it must not ask for capitals
// by a range, a class or an escape.
func lowers(expr string) bool {
	re, err := syntax.Parse(expr, syntax.Perl)
	return err == nil && noCapitals(re)
}

func noCapitals(re *syntax.Regexp) bool {
	has := func(c rune) bool {
		for i := 0; i+1 < len(re.Rune); i += 2 {
			if re.Rune[i] <= c && c <= re.Rune[i+1] {
				return true
			}
		}
		return false
	}
	switch re.Op {
	case syntax.OpLiteral:
		for _, c := range re.Rune {
			if unicode.ToLower(c) != c || re.Flags&syntax.FoldCase != 0 {
				return false
			}
		}
	case syntax.OpCharClass:
		for c := 'A'; c <= 'Z'; c++ {
			if has(c) != has(c+'a'-'A') {
				return false
			}
		}
	}
	for _, sub := range re.Sub {
		if !noCapitals(sub) {
			return false
		}
	}
	return true
}

func (p *filterParser) duration(f field, start int, text string) (alt, error) {
	a := alt{op: ">="}
	rest := text
	for _, op := range []string{">=", "<=", ">", "<"} {
		if r, ok := strings.CutPrefix(text, op); ok {
			a.op, rest = op, r
			break
		}
	}
	d, ok := parseDuration(strings.ToLower(rest))
	if !ok {
		return a, p.fail(start, "%s: takes a time with units s, m, h, d or w, as in %s:>5m or %s:<1h30m", f, f, f)
	}
	a.text, a.micro = strings.ToLower(rest), d.Microseconds()
	return a, nil
}

// parseDuration reads 90s, 1h30m, 1.5d, 2w.
func parseDuration(s string) (time.Duration, bool) {
	var sum float64
	if s == "" {
		return 0, false
	}
	for s != "" {
		i := 0
		for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '.') {
			i++
		}
		n, err := strconv.ParseFloat(s[:i], 64)
		if err != nil || i == len(s) {
			return 0, false
		}
		unit := time.Second
		switch {
		case strings.HasPrefix(s[i:], "ms"):
			unit = time.Millisecond
			i++
		case s[i] == 's':
		case s[i] == 'm':
			unit = time.Minute
		case s[i] == 'h':
			unit = time.Hour
		case s[i] == 'd':
			unit = 24 * time.Hour
		case s[i] == 'w':
			unit = 7 * 24 * time.Hour
		default:
			return 0, false
		}
		sum += n * float64(unit)
		s = s[i+1:]
	}
	if sum > float64(1<<62) {
		return 0, false
	}
	return time.Duration(sum), true
}

// needsQuotes reports whether bare text would be read as something else.
func needsQuotes(text string, f field) bool {
	if text == "" || strings.ContainsAny(text, `,"`) || strings.ContainsFunc(text, unicode.IsSpace) ||
		text[0] == '!' || text[0] == '/' {
		return true
	}
	if f != anyField {
		return false
	}
	p := &filterParser{text: text}
	_, ok := p.fieldName()
	return ok
}
