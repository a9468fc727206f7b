package cli

import (
	"fmt"
	"strings"
	"time"

	"mcptasks/taskmodel"
	"mcptasks/ui/safe"
)

// statusWords says a status with its standing, as the screens do.
func statusWords(t taskmodel.Task) string {
	s := strings.ReplaceAll(safe.Line(string(t.Status)), "_", " ")
	if t.Standing != taskmodel.Live && t.Standing != "" && !t.Terminal() {
		s += ", " + string(t.Standing)
	}
	if !t.CancelRequested.IsZero() && !t.Terminal() {
		s += ", cancel requested"
	}
	return s
}

// span says a duration in at most two units.
func span(d time.Duration) string {
	d = d.Round(time.Second)
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		if s := int(d.Seconds()) % 60; s != 0 && d < 10*time.Minute {
			return fmt.Sprintf("%dm%02ds", int(d.Minutes()), s)
		}
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}

func ageWords(t taskmodel.Task, now time.Time) string {
	born, exact := t.Born()
	if born.IsZero() {
		return "–"
	}
	if exact {
		return span(now.Sub(born))
	}
	return "~" + span(now.Sub(born))
}

func ttlWords(t taskmodel.Task, now time.Time) string {
	if t.TTL.Known && t.TTL.Unlimited {
		return "no limit"
	}
	at, ok := t.ExpiresAt()
	if !ok {
		return "–"
	}
	if !at.After(now) {
		return "over"
	}
	return span(at.Sub(now))
}

func progressWords(t taskmodel.Task) string {
	p := t.Progress
	switch {
	case p == nil:
		return ""
	case p.HasTotal && p.Total > 0:
		return fmt.Sprintf("%d%%", int(100*p.Value/p.Total))
	}
	return fmt.Sprintf("%g", p.Value)
}

func messageWords(t taskmodel.Task) string {
	if t.Note != "" && t.Standing != taskmodel.Live {
		return safe.Line(t.Note)
	}
	if t.StatusMessage == "" && t.Progress != nil {
		return safe.Line(t.Progress.Message)
	}
	return safe.Line(t.StatusMessage)
}
