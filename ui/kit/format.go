package kit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/ui/safe"
	"mcptasks/ui/theme"
)

// Age writes how long ago at was, in at most four cells: 41s, 12m, 3h, 2d.
func (e *Env) Age(at time.Time) string {
	d := max(e.Now.Sub(at), 0)
	e.step(at, d, unit(d))
	return Short(d)
}

// Left writes how long it is until at: 26m. At zero and after it is "0s".
func (e *Env) Left(at time.Time) string {
	d := at.Sub(e.Now)
	if d <= 0 {
		return "0s"
	}
	u := unit(d)
	e.Until(e.Now.Add(d%u + 1))
	return Short(d)
}

// AgeLong is Age with two units: 4m12s, 3h05m, 2d4h.
func (e *Env) AgeLong(at time.Time) string {
	d := max(e.Now.Sub(at), 0)
	e.step(at, d, unit(d)/finer(d))
	return Long(d)
}

// LeftLong is Left with two units.
func (e *Env) LeftLong(at time.Time) string {
	d := at.Sub(e.Now)
	if d <= 0 {
		return "0s"
	}
	u := unit(d) / finer(d)
	e.Until(e.Now.Add(d%u + 1))
	return Long(d)
}

// Wait writes how long since at as a clock: 0:41, 12:10, 1:02:03.
func (e *Env) Wait(at time.Time) string {
	d := max(e.Now.Sub(at), 0)
	e.step(at, d, time.Second)
	return Clock(d)
}

func (e *Env) step(at time.Time, d, u time.Duration) {
	e.Until(at.Add((d/u + 1) * u))
}

func unit(d time.Duration) time.Duration {
	switch {
	case d < time.Minute:
		return time.Second
	case d < time.Hour:
		return time.Minute
	case d < 24*time.Hour:
		return time.Hour
	}
	return 24 * time.Hour
}

// finer is by how much the second unit of Long is smaller than the first.
func finer(d time.Duration) time.Duration {
	switch {
	case d < time.Minute:
		return 1
	case d < 24*time.Hour:
		return 60
	}
	return 24
}

// Short writes a duration in at most four cells.
func Short(d time.Duration) string {
	if d >= 1000*24*time.Hour {
		return strconv.FormatInt(int64(d/(365*24*time.Hour)), 10) + "y"
	}
	u := unit(d)
	return strconv.FormatInt(int64(d/u), 10) + map[time.Duration]string{time.Second: "s", time.Minute: "m", time.Hour: "h", 24 * time.Hour: "d"}[u]
}

// Long writes a duration with two units where that says more.
func Long(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		if s := d % time.Minute / time.Second; s != 0 {
			return fmt.Sprintf("%dm%02ds", d/time.Minute, s)
		}
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 24*time.Hour:
		if m := d % time.Hour / time.Minute; m != 0 {
			return fmt.Sprintf("%dh%02dm", d/time.Hour, m)
		}
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	if h := d % (24 * time.Hour) / time.Hour; h != 0 {
		return fmt.Sprintf("%dd%dh", d/(24*time.Hour), h)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// Every writes a poll interval: 500ms, 1.5s, 5s, 2m.
func Every(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d/time.Millisecond)
	case d < 10*time.Second && d%time.Second != 0:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
	}
	return Long(d)
}

// Clock writes a duration as a clock.
func Clock(d time.Duration) string {
	s := int64(d / time.Second)
	if s < 3600 {
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// RTT writes a round trip: 42 ms, 1.2 s.
func RTT(d time.Duration) string {
	switch {
	case d <= 0:
		return "–"
	case d < time.Millisecond:
		return "<1 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d/time.Millisecond)
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// Bytes writes a size: 812 B, 4.2 KB, 20 MB.
func Bytes(n int64) string {
	units := []string{"B", "KB", "MB", "GB", "TB"}
	f, i := float64(n), 0
	for f >= 1000 && i < len(units)-1 {
		f /= 1024
		i++
	}
	if i == 0 || f >= 10 {
		return fmt.Sprintf("%.0f %s", f, units[i])
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}

// Count writes "1 task", "3 tasks", "1,214 tasks".
func Count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if many, ok := map[string]string{"match": "matches", "reply": "replies"}[one]; ok {
		return Thousands(n) + " " + many
	}
	return Thousands(n) + " " + one + "s"
}

// Thousands writes a number with commas.
func Thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// ShortID is the head of a task id that a list shows.
func ShortID(id string) string {
	s := safe.Line(id)
	return safe.Truncate(s, 8, "")
}

// Fraction is how much of the progress is done, when that is known.
func Fraction(p *taskmodel.Progress) (float64, bool) {
	if p == nil || !p.HasTotal || p.Total <= 0 || math.IsNaN(p.Value) || math.IsInf(p.Value, 0) {
		return 0, false
	}
	return min(max(p.Value/p.Total, 0), 1), true
}

// Number writes a progress value without needless digits.
func Number(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1e12 {
		return Thousands(int(f))
	}
	return strconv.FormatFloat(f, 'g', 4, 64)
}

// Bar draws a progress bar of w cells.
func Bar(fraction float64, w int, full, empty theme.Style) string {
	n := int(math.Round(fraction * float64(w)))
	if n == w && fraction < 1 {
		n = w - 1
	}
	return full.Render(strings.Repeat("━", n)) + empty.Render(strings.Repeat("─", w-n))
}

// Sparkline draws the last values as a line of w blocks.
func Sparkline(values []time.Duration, w int) string {
	if len(values) > w {
		values = values[len(values)-w:]
	}
	var top time.Duration
	for _, v := range values {
		top = max(top, v)
	}
	if top == 0 {
		return ""
	}
	blocks := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, v := range values {
		b.WriteRune(blocks[min(int(v*time.Duration(len(blocks)-1)/top), len(blocks)-1)])
	}
	return b.String()
}

// Refusal says in a few words why a question is open again after an answer.
func Refusal(q taskmodel.Question) string {
	if strings.HasPrefix(q.Refusal, taskmodel.NotSent) {
		return safe.Line(q.Refusal)
	}
	return "refused: " + safe.Line(q.Refusal)
}

// Gist cuts an error to w cells where it says the most: its end has the cause,
// its beginning only who was doing what. lead, the name of whoever is told of
// already, goes first.
func Gist(text, lead string, w int) string {
	text = strings.TrimPrefix(safe.Line(text), safe.Line(lead)+": ")
	for safe.Width(text) > w {
		_, rest, ok := strings.Cut(text, ": ")
		if !ok {
			return safe.Truncate(text, w, safe.Ellipsis)
		}
		text = rest
	}
	return text
}
