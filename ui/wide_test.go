package ui_test

import (
	"fmt"
	"strings"
	"testing"

	"mcptasks/taskmodel"
	"mcptasks/taskmodel/board"
	"mcptasks/ui/screentest"
)

// U2: wide, joined, combining and right-to-left text in a cell of the table
// leaves the columns behind it where they are.
func TestU2_WideTextKeepsTheColumns(t *testing.T) {
	texts := []string{"plain", "日本語のツール名前はとても長い名前です", "👩\u200d👩\u200d👧\u200d👦 family 👨\u200d💻", "cafe\u0301 a\u0308\u0308\u0308", "שלום עולם مرحبا بالعالم",
		"ｱｲｳ 🇩🇪🇫🇷 ❤\ufe0f 👍🏽", strings.Repeat("字", 90), "a" + strings.Repeat("\u0301", 50), "\u26a0\ufe0f 3 failed"}
	for _, width := range []int{90, 120, 200} {
		bubble(t, func(t *testing.T) {
			m := screentest.NewMonitor()
			m.Change(func(b *board.Board) {
				b.PutServer(taskmodel.Server{Name: "ci", Target: "x", State: taskmodel.ServerReady, Generation: taskmodel.GenCore})
				for i, s := range texts {
					b.Insert(taskmodel.Task{Key: key("ci", fmt.Sprintf("%08d", i)), Generation: taskmodel.GenCore, Status: taskmodel.Working, Tool: s, StatusMessage: s + " end",
						CreatedAt: day, FirstHeardAt: day, StatusSince: day, LastHeardAt: day, Standing: taskmodel.Live})
				}
			})
			term := run(t, m, width, 24, nil)
			at, seen := -1, 0
			for y, row := range term.Cells() {
				if at < 0 {
					for x := range row {
						if spelled(row, x, "AGE   TTL") {
							at = x
						}
					}
					continue
				}
				if line := term.Line(y); strings.Contains(line, "● working") {
					seen++
					if !spelled(row, at, " 0s     –") {
						t.Errorf("%d columns: the age is not in its column:\n%s", width, line)
					}
				}
			}
			if seen != len(texts) {
				t.Errorf("%d columns: %d of %d rows are seen, the ages begin at %d\n%s", width, seen, len(texts), at, term.Screen())
			}
		})
	}
}

// spelled reports whether the cells from x on are a text, a letter each.
func spelled(row []screentest.Cell, x int, text string) bool {
	for i, r := range text {
		if x+i >= len(row) || row[x+i].Text != string(r) {
			return false
		}
	}
	return true
}
