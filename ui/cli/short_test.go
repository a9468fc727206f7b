package cli

import (
	"strings"
	"testing"
)

// On a terminal that is too narrow for whole ids they are shortened to what tells
// the tasks apart and can be given to a command; in a pipe they are not.
func TestShortTasks(t *testing.T) {
	table := func(tasks ...string) [][]string {
		rows := [][]string{{"TIME", "TASK", "DETAIL"}}
		for _, id := range tasks {
			rows = append(rows, []string{"12:00", id, "words that matter"})
		}
		return rows
	}
	const a, b = "ci/00000001-0000-4000-8000-000000000000", "ci/00000001-0000-4000-9000-000000000000"
	for _, tt := range []struct {
		name  string
		rows  [][]string
		width int
		want  string
	}{
		{"no terminal", table(a), 0, a},
		{"room enough", table(a), 80, a},
		{"narrow", table(a), 60, "ci/00000001"},
		{"the same task again", table(a, a), 60, "ci/00000001 ci/00000001"},
		{"alike to far in", table(a, b), 60, "ci/00000001-0000-4000-8 ci/00000001-0000-4000-9"},
		{"another server's", table(a, "lab"+b[2:]), 60, "ci/00000001 lab/00000001"},
		{"asked of us", table("ci/@00000001-0000-4000-8000-000000000000"), 60, "ci/@00000001"},
		{"one is the beginning of the other", table("ci/1234567890"+strings.Repeat("0", 30), "ci/12345678"), 50, "ci/123456789 ci/12345678"},
		{"letters of several bytes", table("ci/" + strings.Repeat("é", 40)), 50, "ci/éééééééé"},
		{"short ones", table("ci/1", "ci/2"), 10, "ci/1 ci/2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			was := tt.rows[1][1]
			var got []string
			for _, row := range shortTasks(tt.rows, tt.width)[1:] {
				got = append(got, row[1])
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("%s, want %s", s, tt.want)
			}
			if tt.rows[1][1] != was {
				t.Error("the rows themselves were changed")
			}
		})
	}
	if rows := [][]string{{"NAME", "SAYS"}, {"x", strings.Repeat("y", 50)}}; len(shortTasks(rows, 10)[1][1]) != 50 {
		t.Error("a table without tasks was changed")
	}
}
