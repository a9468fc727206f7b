package ui

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"mcptasks/keymap"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/ui/act"
	"mcptasks/ui/detail"
	"mcptasks/ui/dialog"
	"mcptasks/ui/graphics"
	"mcptasks/ui/kit"
	"mcptasks/ui/list"
	"mcptasks/ui/notify"
	"mcptasks/ui/palette"
	"mcptasks/ui/safe"
	"mcptasks/ui/textview"
	"mcptasks/ui/theme"
)

// A model is the whole program's state. Bubble Tea's loop owns it; View only
// hands out the frame that Update has drawn.
type model struct {
	ctx  context.Context
	mon  Monitor
	opt  Options
	keys keymap.Map
	env  kit.Env
	now  time.Time // of the message being handled, not cut to seconds

	w, h    int
	dark    bool
	theme   string
	th      theme.Theme
	mouse   bool
	focused bool // the terminal window has the focus, as far as is known

	list    *list.List
	stack   []kit.Screen // over the list
	side    *detail.Detail
	sideOn  bool // wanted
	sideKey bool // the side has the keys
	dialogs dialog.Stack
	palette *palette.Palette
	past    kit.History       // of commands
	calls   []act.Start       // recent, newest first
	views   map[string]string // saved from the screens
	saved   *viewsFile        // where they are kept
	notice  notice
	teller  notify.Teller
	drafts  map[taskmodel.QuestionID]*drafting
	await   taskmodel.Key // pressed a on it; its question opens when it comes
	result  taskmodel.Key // pressed r on it; its result opens when it comes
	linked  string        // the resource that was asked for; it opens when it comes
	quitAt  time.Time     // ctrl+c was pressed then
	quit    bool
	job     *job // nil: there is no terminal to give to a shell
	pace    *pace

	canvas *graphics.Canvas
	paint  bool // pictures of the frame are to be written behind the renderer's back

	frame  string
	tickAt time.Time // of the tick under way
	tickN  int
	shown  []taskmodel.Key // last given to the monitor's Focus
}

type notice struct {
	text  string
	bad   bool
	until time.Time
}

type tickMsg int

// doneMsg is the end of a command: a sentence, or an error's.
type doneMsg struct {
	text string
	err  error
	then act.Action
}

func newModel(ctx context.Context, mon Monitor, o Options) (*model, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	m := &model{ctx: ctx, mon: mon, opt: o, w: 80, h: 24, dark: true, theme: o.Theme, mouse: o.Mouse, sideOn: !o.NoSide, focused: true,
		drafts: map[taskmodel.QuestionID]*drafting{}}
	if o.Keys != nil {
		m.keys = *o.Keys
	} else {
		m.keys = keymap.Default()
	}
	if err := m.setTheme(o.Theme); err != nil {
		return nil, err
	}
	if err := list.CheckColumns(o.List.Columns); err != nil {
		return nil, err
	}
	l, err := list.New(o.List)
	if err != nil {
		return nil, fmt.Errorf("the list's filter: %w", err)
	}
	m.list = l
	m.side = detail.New(taskmodel.Key{}, true)
	t, err := notify.New(o.Notify)
	if err != nil {
		return nil, err
	}
	m.teller = t
	env := o.Env
	if env == nil {
		env = os.Environ()
	}
	if m.canvas, err = graphics.New(o.Images, env); err != nil {
		return nil, err
	}
	m.views, m.saved = loadViews(o.ViewsFile), &viewsFile{path: o.ViewsFile}
	m.env = kit.Env{Canvas: m.canvas, Theme: &m.th, Keys: &m.keys, Board: mon.Board(), Readonly: o.Readonly}
	m.begin()
	m.list.Refresh(&m.env)
	m.teller.Seen(m.env.Board)
	return m, nil
}

// begin starts the handling of a message: one reading of the clock for all of
// it, cut to seconds so that all clocks on the screen step together.
func (m *model) begin() {
	m.now = m.opt.Now()
	m.env.Begin(m.now.Truncate(second))
	m.env.Paused = m.mon.Paused()
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return tea.RequestBackgroundColor }

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.pace.wake()
	m.begin()
	cmd := m.handle(msg)
	if m.quit {
		return m, tea.Sequence(m.canvas.Leave(), tea.Quit)
	}
	m.draw()
	return m, tea.Batch(cmd, m.schedule(), m.focus(), m.work(), m.canvas.Ask(), m.pictures())
}

// work starts what the screen in front has left to do beside the loop.
func (m *model) work() tea.Cmd {
	top := m.top()
	if top == kit.Screen(m.list) && m.sideShown() {
		top = m.side
	}
	if w, ok := top.(kit.Worker); ok {
		return w.Work()
	}
	return nil
}

// schedule asks for a tick when something in the frame will be out of date by
// the clock alone, on the next full second at the earliest.
func (m *model) schedule() tea.Cmd {
	at := m.env.Next()
	if at.IsZero() {
		return nil
	}
	if rest := at.Truncate(second); rest != at {
		at = rest.Add(second)
	}
	if !m.tickAt.IsZero() && !m.tickAt.After(at) {
		return nil
	}
	m.tickAt = at
	m.tickN++
	n := m.tickN
	ctx, d := m.ctx, max(at.Sub(m.now), time.Millisecond)
	return func() tea.Msg {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return tickMsg(n)
		case <-ctx.Done():
			return nil
		}
	}
}

// focus tells the monitor what is on the screen when that has changed.
func (m *model) focus() tea.Cmd {
	keys := m.focusKeys()
	if equal(keys, m.shown) {
		return nil
	}
	m.shown = keys
	m.mon.Focus(keys)
	return nil
}

func (m *model) focusKeys() []taskmodel.Key {
	if d, ok := m.top().(*detail.Detail); ok {
		return []taskmodel.Key{d.Key()}
	}
	if len(m.stack) == 0 {
		return m.list.Shown()
	}
	return m.shown
}

func equal(a, b []taskmodel.Key) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// top is the screen in front.
func (m *model) top() kit.Screen {
	if n := len(m.stack); n > 0 {
		return m.stack[n-1]
	}
	if m.sideKey && m.sideShown() {
		return m.side
	}
	return m.list
}

func (m *model) handle(msg tea.Msg) tea.Cmd {
	if m.canvas.Hear(msg) {
		return nil
	}
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.w, m.h = msg.Width, msg.Height
		m.canvas.Stale()
	case graphics.Drawn:
		m.canvas.Take(msg)
	case picturesMsg:
		if m.canvas.Current(msg.turn) {
			return tea.Raw(msg.seq)
		}
	case tea.ResumeMsg:
		m.canvas.Stale()
	case tea.BackgroundColorMsg:
		if dark := msg.IsDark(); dark != m.dark {
			m.dark = dark
			_ = m.setTheme(m.theme)
		}
	case tea.FocusMsg:
		m.focused = true
	case tea.BlurMsg:
		m.focused = false
	case tickMsg:
		if int(msg) == m.tickN {
			m.tickAt = time.Time{}
		}
	case boardMsg:
		return m.refresh(msg.v)
	case eventsMsg:
		return m.tell(msg)
	case doneMsg:
		if msg.err != nil {
			m.say(msg.err.Error(), true)
		} else if msg.text != "" {
			m.say(msg.text, false)
		}
		return m.do(msg.then)
	case draftedMsg:
		return m.drafted(msg)
	case slowDraftMsg:
		m.sayDrafting(msg.id)
	case historyMsg:
		for _, s := range m.stack {
			if d, ok := s.(*detail.Detail); ok && d.Key() == msg.key {
				d.History(msg.past)
			}
		}
	case suspendMsg:
		return m.suspend()
	case continuedMsg:
		return m.job.retake()
	case startedMsg:
		return m.started(msg)
	case pagesMsg:
		return m.pages(msg)
	case outcomeMsg:
		return m.outcome(msg)
	case logMsg:
		m.push(textview.New("The log, "+safe.Line(msg.path), msg.text))
	case resourceMsg:
		return m.resource(msg)
	case overMsg:
		m.askOver(saveTo(msg))
	case tea.KeyPressMsg:
		return m.key(msg)
	case tea.PasteMsg:
		return m.typed(msg)
	case tea.MouseMsg:
		return m.click(msg)
	case tea.EnvMsg, tea.ColorProfileMsg, tea.KeyboardEnhancementsMsg, tea.KeyReleaseMsg, nil:
	default:
		return m.others(msg)
	}
	return nil
}

// others gives a message that the root does not know to every screen that may
// have sent for it.
func (m *model) others(msg tea.Msg) tea.Cmd {
	cmds := []tea.Cmd{m.do(m.list.Update(&m.env, msg))}
	if m.side != nil {
		cmds = append(cmds, m.do(m.side.Update(&m.env, msg)))
	}
	for _, s := range append([]kit.Screen(nil), m.stack...) {
		cmds = append(cmds, m.do(s.Update(&m.env, msg)))
	}
	return tea.Batch(cmds...)
}

// refresh takes a new version of the board to every screen.
func (m *model) refresh(v *board.Version) tea.Cmd {
	if v == m.env.Board {
		return nil
	}
	m.env.Board = v
	cmds := []tea.Cmd{m.do(m.list.Refresh(&m.env))}
	for _, s := range append([]kit.Screen(nil), m.stack...) {
		if r, ok := s.(kit.Refresher); ok {
			cmds = append(cmds, m.do(r.Refresh(&m.env)))
		}
	}
	cmds = append(cmds, m.awaited(), m.reload())
	return tea.Batch(cmds...)
}

func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	m.await, m.result, m.linked = taskmodel.Key{}, taskmodel.Key{}, ""
	if key.Matches(k, m.keys.Interrupt.Binding) {
		if m.now.Sub(m.quitAt) < 2*time.Second {
			m.quit = true
			return nil
		}
		m.quitAt = m.now
		m.notice = notice{"Press " + m.keys.Interrupt.Label() + " once more to quit; nothing is sent.", false, m.now.Add(2 * time.Second)}
		return nil
	}
	m.quitAt = time.Time{}
	if m.notice.text != "" && m.now.After(m.notice.until.Add(-act.After+time.Second)) {
		m.notice = notice{}
	}
	return m.typed(k)
}

// typed gives a key or a paste to whoever is in front.
func (m *model) typed(msg tea.Msg) tea.Cmd {
	if m.dialogs.Top() != nil {
		return m.do(m.dialogs.Update(&m.env, m.now, msg))
	}
	if m.palette != nil {
		return m.typeCommand(msg)
	}
	top := m.top()
	if k, ok := msg.(tea.KeyPressMsg); ok {
		if m.onForm() && key.Matches(k, m.keys.FormHelp.Binding) {
			return m.do(act.Goto{Screen: "help"})
		}
		if t, ok := top.(kit.Typer); !ok || !t.Typing() {
			if cmd, used := m.global(k, top); used {
				return cmd
			}
		}
	}
	return m.do(top.Update(&m.env, msg))
}

// suspend gives the terminal to the shell until the program is continued.
func (m *model) suspend() tea.Cmd {
	if m.job == nil {
		return nil
	}
	return m.job.suspend()
}

// global takes the keys that mean the same on every screen.
func (m *model) global(k tea.KeyPressMsg, top kit.Screen) (tea.Cmd, bool) {
	is := func(b keymap.Binding) bool { return b.In&top.Context() != 0 && key.Matches(k, b.Binding) }
	keys := &m.keys
	if s, ok := top.(interface{ Searching() bool }); ok && s.Searching() && (key.Matches(k, keys.NextMatch.Binding) || key.Matches(k, keys.PrevMatch.Binding)) {
		return nil, false
	}
	switch {
	case is(keys.Command):
		m.openPalette("")
	case is(keys.Help):
		return m.do(act.Goto{Screen: "help"}), true
	case is(keys.Quit):
		return m.askQuit(), true
	case is(keys.Suspend):
		return m.suspend(), true
	case is(keys.Tasks):
		return m.do(act.Goto{Screen: "tasks"}), true
	case is(keys.Inbox):
		return m.do(act.Goto{Screen: "inbox"}), true
	case is(keys.Servers):
		return m.do(act.Goto{Screen: "servers"}), true
	case is(keys.Wire):
		if s, ok := top.(interface{ Server() string }); ok {
			return m.do(act.OpenWire{Server: s.Server()}), true
		}
		return m.do(act.OpenWire{}), true
	case is(keys.Start):
		a := act.OpenStart{}
		if s, ok := top.(interface{ Server() string }); ok {
			a.Server = s.Server()
		}
		if d, ok := top.(*detail.Detail); ok {
			a.Server, a.TaskID = d.Wanted(&m.env)
		}
		return m.do(a), true
	case is(keys.Add):
		a := ""
		if s, ok := top.(interface{ Server() string }); ok {
			a = s.Server()
		}
		return m.do(m.addLine(a)), true
	case is(keys.Pause):
		return m.pause(), true
	case is(keys.Mouse):
		m.mouse = !m.mouse
		m.say(map[bool]string{true: "Mouse on: click and wheel.", false: "Mouse off: the terminal selects text again."}[m.mouse], false)
	case is(keys.Theme):
		m.nextTheme()
	case is(keys.Redraw):
		m.canvas.Stale()
		return tea.ClearScreen, true
	case is(keys.Side) && (top == kit.Screen(m.list) || top == kit.Screen(m.side)):
		m.toggleSide()
	case is(keys.NextPane) && m.sideShown() && top == kit.Screen(m.list):
		m.sideKey = true
		m.side.Focus(true)
	case is(keys.Back) && m.sideKey && top == kit.Screen(m.side):
		m.sideKey = false
		m.side.Focus(false)
	default:
		return nil, false
	}
	return nil, true
}

func (m *model) click(msg tea.MouseMsg) tea.Cmd {
	if !m.mouse || m.dialogs.Top() != nil || m.palette != nil {
		return nil
	}
	top := m.top()
	if c, ok := msg.(tea.MouseClickMsg); ok {
		if top == kit.Screen(m.list) && c.Button == tea.MouseLeft {
			if m.list.Click(c.Y - m.bodyTop()) {
				if k, ok := m.list.Selected(); ok {
					return m.do(act.OpenTask{Task: k})
				}
			}
		}
		return nil
	}
	if w, ok := msg.(tea.MouseWheelMsg); ok {
		return m.do(top.Update(&m.env, w))
	}
	return nil
}

func (m *model) say(text string, bad bool) {
	d := act.After
	if bad {
		d *= 2
	}
	m.notice = notice{text, bad, m.now.Add(d)}
}

func (m *model) setTheme(name string) error {
	t, err := themeOf(name, m.opt.Themes, m.dark)
	if err != nil {
		return err
	}
	m.th, m.theme = t, name
	return nil
}

// themeOf is a theme of the configuration, or a built-in one.
func themeOf(name string, own map[string]map[string]string, dark bool) (theme.Theme, error) {
	if spec, ok := own[name]; ok {
		return theme.Custom(name, spec, dark)
	}
	t, ok := theme.Named(name, dark)
	if !ok {
		return t, fmt.Errorf("no theme is called %q (there are %s)", name, strings.Join(themeNames(own), ", "))
	}
	return t, nil
}

// CheckTheme says what is wrong with a theme's name, or with the theme of the
// configuration that it names.
func CheckTheme(name string, own map[string]map[string]string) error {
	_, err := themeOf(name, own, true)
	return err
}

func (m *model) themes() []string { return themeNames(m.opt.Themes) }

func themeNames(own map[string]map[string]string) []string {
	return append(theme.Names(), slices.Sorted(maps.Keys(own))...)
}

func (m *model) nextTheme() {
	names := m.themes()
	at := 0
	for i, n := range names {
		if n == m.theme || m.theme == "" && n == "auto" {
			at = i
		}
	}
	next := names[(at+1)%len(names)]
	if err := m.setTheme(next); err != nil {
		m.say(err.Error(), true)
		return
	}
	m.say("Theme: "+next, false)
}
