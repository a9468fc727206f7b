package board

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"mcptasks/taskmodel"
)

// A Filter is a parsed filter expression: terms that must all hold.
//
//	word            letters in this order in the tool, server or status, or at the start of a
//	                word of the message or id, or together anywhere
//	"two words"     the same, with spaces; in a field: exactly this
//	/regex/         RE2 in any of the five; without regard to case unless it has a capital
//	!term           not
//	a,b             one of these; field:!a,b none of these
//	status: gen: standing: server: owner: role: id:   begins with
//	tool: msg:      contains; a /regex/ may stand here too
//	age:>5m ttl:<1m  units s m h d w; > < >= <=, >= when left out
//	has:input result error progress note cancel parent children ttl
//
// A nil Filter lets everything through. Filters are immutable.
type Filter struct {
	terms []term
}

// A FilterError says what is wrong with an expression and where.
type FilterError struct {
	Column  int // in characters, from 1
	Message string
}

func (e *FilterError) Error() string { return fmt.Sprintf("column %d: %s", e.Column, e.Message) }

type field uint8

const (
	anyField field = iota
	fieldStatus
	fieldServer
	fieldTool
	fieldID
	fieldMsg
	fieldGen
	fieldStanding
	fieldOwner
	fieldRole
	fieldAge
	fieldTTL
	fieldHas
)

var fieldNames = []string{"", "status", "server", "tool", "id", "msg", "gen", "standing", "owner", "role", "age", "ttl", "has"}

func (f field) String() string { return fieldNames[f] }

func (f field) clocked() bool { return f == fieldAge || f == fieldTTL }

var hasNames = []string{"input", "result", "error", "progress", "note", "cancel", "parent", "children", "ttl"}

type hasBits uint16

const (
	hasInput hasBits = 1 << iota
	hasResult
	hasError
	hasProgress
	hasNote
	hasCancel
	hasParent
	hasChildren
	hasTTL
)

type term struct {
	field field
	not   bool
	alts  []alt
}

// An alt is one of the alternatives of a term.
type alt struct {
	text  string  // as it was written
	fold  string  // in lower case
	needs letters // of fold
	lower bool    // re is to be applied to text in lower case
	exact bool    // quoted
	re    *regexp.Regexp
	op    string // age, ttl: > < >= <=
	micro int64
	has   hasBits
}

// A Subject is what a filter looks at. Those who filter other things than
// tasks (the wire log) fill in what they have.
type Subject struct {
	Server, Tool, ID, Message, Owner string
	Status                           taskmodel.Status
	Generation                       taskmodel.Generation
	Standing                         taskmodel.Standing
	Role                             taskmodel.Role

	born, expires int64 // microseconds, 0: none
	has           hasBits

	head    *head   // of a row: what its words say of a term
	memo    *memo   // is remembered here; nil: nothing is
	letters letters // of message and id
}

// A memo remembers what terms said, for one pass over many rows. It belongs to
// one goroutine.
type memo struct {
	heads map[verdict]bool
	texts map[spoken]bool
}

func newMemo() *memo { return &memo{map[verdict]bool{}, map[spoken]bool{}} }

// A verdict is the key of what a term said of a head's words; there are few
// heads for many rows.
type verdict struct {
	alt  *alt
	head *head
}

// A spoken is the key of what a regular expression said of a message: many tasks
// say the same, and to look that up costs a tenth.
type spoken struct {
	alt  *alt
	text string
}

// maxTexts bounds the messages that are remembered: past it the tasks say too
// different things for it to be of use.
const maxTexts = 4096

// message is search in a task's message.
func (a *alt) message(s *Subject) bool {
	if s.memo == nil {
		return a.search(s.Message)
	}
	k := spoken{a, s.Message}
	hit, ok := s.memo.texts[k]
	if !ok {
		if hit = a.search(s.Message); len(s.memo.texts) < maxTexts {
			s.memo.texts[k] = hit
		}
	}
	return hit
}

func subjectOf(t *taskmodel.Task) Subject {
	s := Subject{Server: t.Server, Tool: t.Tool, ID: t.ID, Message: t.StatusMessage, Owner: t.Owner,
		Status: t.Status, Generation: t.Generation, Standing: t.Standing, Role: t.Role, letters: anyLetters}
	born, _ := t.Born()
	s.born = micros(born)
	if at, ok := t.ExpiresAt(); ok {
		s.expires = micros(at)
		s.has |= hasTTL
	}
	s.mark(hasInput, t.NeedsPerson() || len(t.Inputs) > 0)
	s.mark(hasResult, !t.Outcome.IsZero())
	s.mark(hasError, t.Outcome.Err != nil)
	s.mark(hasProgress, t.Progress != nil)
	s.mark(hasNote, t.Note != "")
	s.mark(hasCancel, !t.CancelRequested.IsZero())
	s.mark(hasParent, t.ParentID != "")
	s.mark(hasChildren, len(t.Children) > 0)
	return s
}

func subjectOfRow(r *row) Subject {
	h := r.head
	s := Subject{Server: h.key.Server, Tool: h.tool, ID: r.id, Message: r.msg, Owner: h.owner,
		Status: h.status.status, Generation: h.gen, Standing: h.standing, Role: h.key.Role,
		born: r.born(), expires: r.expires(), letters: r.letters}
	s.mark(hasTTL, s.expires != 0)
	s.mark(hasInput, r.needsPerson())
	if x := r.x; x != nil {
		s.mark(hasInput, len(x.inputs) > 0)
		s.mark(hasResult, !x.outcome.IsZero())
		s.mark(hasError, x.outcome.Err != nil)
		s.mark(hasProgress, x.progress != nil)
		s.mark(hasNote, x.note != "")
		s.mark(hasCancel, x.cancelAsked != 0)
		s.mark(hasParent, x.parent != "")
		s.mark(hasChildren, len(x.children) > 0)
	}
	return s
}

func (s *Subject) mark(b hasBits, on bool) {
	if on {
		s.has |= b
	}
}

// Match reports whether the task passes at the given time.
func (f *Filter) Match(t *taskmodel.Task, now time.Time) bool {
	if f.Empty() {
		return true
	}
	s := subjectOf(t)
	return f.match(&s, now.UnixMicro())
}

// MatchSubject reports whether something that is no task passes. Age, time to
// live and has: hold for nothing that has none of them.
func (f *Filter) MatchSubject(s Subject, now time.Time) bool {
	s.letters = anyLetters
	return f.Empty() || f.match(&s, now.UnixMicro())
}

// Empty reports whether everything passes.
func (f *Filter) Empty() bool { return f == nil || len(f.terms) == 0 }

// Clocked reports whether the answer for a task can change as time passes.
func (f *Filter) Clocked() bool {
	return f != nil && slices.ContainsFunc(f.terms, func(t term) bool { return t.field.clocked() })
}

// Next is when a filter that looks at the clock is to be applied again: the
// next full second. Zero for others.
func (f *Filter) Next(now time.Time) time.Time {
	if !f.Clocked() {
		return time.Time{}
	}
	return now.Truncate(time.Second).Add(time.Second)
}

// A matcher is a filter at an instant.
// It belongs to one goroutine.
type matcher struct {
	f    *Filter
	now  int64
	memo *memo
}

func (f *Filter) matcher(now time.Time) matcher {
	m := matcher{f: f, now: now.UnixMicro()}
	if !f.Empty() {
		m.memo = newMemo()
	}
	return m
}

// fork is the matcher for another goroutine.
func (m matcher) fork() matcher {
	if m.memo != nil {
		m.memo = newMemo()
	}
	return m
}

func (m matcher) row(r *row) bool {
	if m.f.Empty() {
		return true
	}
	if len(m.memo.heads) > 4*maxHeads {
		clear(m.memo.heads)
	}
	s := subjectOfRow(r)
	s.head, s.memo = r.head, m.memo
	return m.f.match(&s, m.now)
}

func (f *Filter) match(s *Subject, now int64) bool {
	for i := range f.terms {
		t := &f.terms[i]
		hit := false
		for j := range t.alts {
			if t.alts[j].match(t.field, s, now) {
				hit = true
				break
			}
		}
		if hit == t.not {
			return false
		}
	}
	return true
}

func (a *alt) match(f field, s *Subject, now int64) bool {
	switch f {
	case anyField:
		if a.re != nil {
			return a.matchHead(s) || a.message(s) || a.search(s.ID)
		}
		return a.matchHead(s) || s.letters.hold(a.needs) && (fuzzyWord(s.Message, a.fold) || fuzzyWord(s.ID, a.fold))
	case fieldStatus:
		return a.begins(string(s.Status))
	case fieldServer:
		return a.begins(s.Server)
	case fieldTool:
		return a.within(s.Tool)
	case fieldID:
		return a.begins(s.ID)
	case fieldMsg:
		if a.re == nil {
			return s.letters.hold(a.needs) && containsFold(s.Message, a.fold)
		}
		return a.message(s)
	case fieldGen:
		return a.begins(string(s.Generation)) || a.begins(genAlias(s.Generation))
	case fieldStanding:
		return a.begins(string(s.Standing))
	case fieldOwner:
		return a.within(s.Owner)
	case fieldRole:
		return a.begins(string(s.Role))
	case fieldAge:
		return s.born != 0 && a.holds(now-s.born)
	case fieldTTL:
		return s.expires != 0 && a.holds(s.expires-now)
	case fieldHas:
		return s.has&a.has != 0
	}
	return false
}

// search applies the regular expression. Without regard to case it is applied
// to the text in lower case where that is the same: several times faster.
func (a *alt) search(s string) bool {
	if a.lower {
		s = strings.ToLower(s)
	}
	return a.re.MatchString(s)
}

func (a *alt) matchHead(s *Subject) bool {
	if s.memo != nil {
		if hit, ok := s.memo.heads[verdict{a, s.head}]; ok {
			return hit
		}
	}
	find := a.search
	if a.re == nil {
		find = func(text string) bool { return fuzzy(text, a.fold) }
	}
	hit := find(s.Tool) || find(s.Server) || find(string(s.Status))
	if s.memo != nil {
		s.memo.heads[verdict{a, s.head}] = hit
	}
	return hit
}

func genAlias(g taskmodel.Generation) string {
	switch g {
	case taskmodel.GenCore:
		return "core"
	case taskmodel.GenExtension:
		return "extension"
	}
	return string(g)
}

func (a *alt) begins(s string) bool {
	switch {
	case a.re != nil:
		return a.search(s)
	case a.exact:
		return s == a.text
	}
	return hasPrefixFold(s, a.fold)
}

func (a *alt) within(s string) bool {
	switch {
	case a.re != nil:
		return a.search(s)
	case a.exact:
		return s == a.text
	}
	return containsFold(s, a.fold)
}

func (a *alt) holds(v int64) bool {
	switch a.op {
	case ">":
		return v > a.micro
	case "<":
		return v < a.micro
	case "<=":
		return v <= a.micro
	}
	return v >= a.micro
}

// Narrows reports whether nothing passes f that did not pass old, at any time,
// so that only what passed old has to be looked at. It may say false too often,
// never true wrongly.
func (f *Filter) Narrows(old *Filter) bool {
	if old.Empty() {
		return true
	}
	if f.Empty() || old.Clocked() {
		return false
	}
	for i := range old.terms {
		o := &old.terms[i]
		if !slices.ContainsFunc(f.terms, func(n term) bool { return n.implies(o) }) {
			return false
		}
	}
	return true
}

func (t *term) implies(o *term) bool {
	if t.field != o.field || t.not != o.not {
		return false
	}
	strong, weak := t.alts, o.alts
	if t.not { // who leaves out more lets through less
		strong, weak = weak, strong
	}
	for i := range strong {
		if !slices.ContainsFunc(weak, func(w alt) bool { return strong[i].implies(&w, t.field) }) {
			return false
		}
	}
	return true
}

func (a *alt) implies(w *alt, f field) bool {
	switch {
	case a.re != nil || w.re != nil:
		return a.re != nil && w.re != nil && a.text == w.text
	case f.clocked():
		return a.op == w.op && a.micro == w.micro
	case f == fieldHas:
		return a.has == w.has
	case w.exact && f != anyField && f != fieldMsg:
		return a.exact && a.text == w.text
	}
	return strings.HasPrefix(a.fold, w.fold)
}

// String gives an expression that parses to the same filter.
func (f *Filter) String() string {
	if f.Empty() {
		return ""
	}
	var b strings.Builder
	for i, t := range f.terms {
		if i > 0 {
			b.WriteByte(' ')
		}
		if t.field != anyField {
			b.WriteString(t.field.String() + ":")
		}
		if t.not {
			b.WriteByte('!')
		}
		for j, a := range t.alts {
			if j > 0 {
				b.WriteByte(',')
			}
			b.WriteString(a.spell(t.field))
		}
	}
	return b.String()
}

func (a *alt) spell(f field) string {
	switch {
	case a.re != nil:
		return "/" + strings.ReplaceAll(a.text, "/", `\/`) + "/"
	case f.clocked():
		return a.op + a.text
	case a.exact || needsQuotes(a.text, f):
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(a.text) + `"`
	}
	return a.text
}
