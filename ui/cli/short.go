package cli

import (
	"slices"
	"strings"

	"mcptasks/ui/safe"
)

// shortestID is how much of an id is shown at least.
const shortestID = 8

// shortTasks shortens the ids of a table that is wider than the terminal, so
// that what a person looks for is not behind them: to a beginning that no other
// task of the table has, which is as good as the whole in a command. width 0 (no
// terminal) shortens nothing.
func shortTasks(rows [][]string, width int) [][]string {
	if width <= 0 || len(rows) < 2 {
		return rows
	}
	col := slices.Index(rows[0], "TASK")
	if col < 0 || tableWidth(rows) <= width {
		return rows
	}
	n := shortestID
	for !apart(rows[1:], col, n) {
		n++
	}
	out := slices.Clone(rows)
	for i, row := range out[1:] {
		row = slices.Clone(row)
		row[col] = shortTask(row[col], n)
		out[i+1] = row
	}
	return out
}

func tableWidth(rows [][]string) int {
	var widths []int
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], safe.Width(c))
		}
	}
	total := 2 * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	return total
}

// shortTask is SERVER/TASKID with n letters of the id.
func shortTask(task string, n int) string {
	server, id, ok := strings.Cut(task, "/")
	if !ok {
		return task
	}
	at := ""
	if strings.HasPrefix(id, "@") {
		at, id = "@", id[1:]
	}
	if r := []rune(id); len(r) > n {
		id = string(r[:n])
	}
	return server + "/" + at + id
}

// apart reports whether n letters tell all tasks of the table apart.
func apart(rows [][]string, col, n int) bool {
	whole := map[string]string{}
	for _, row := range rows {
		short := shortTask(row[col], n)
		if is, ok := whole[short]; ok && is != row[col] {
			return false
		}
		whole[short] = row[col]
	}
	return true
}
