package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"mcptasks/ui/safe"
)

// print writes values as the output asks for: json gives one value (an array
// unless single), jsonl one a line, table calls rows.
func (r *run) print(values []any, single bool, rows func() [][]string) error {
	w := bufio.NewWriter(r.env.Stdout)
	var err error
	switch r.g.Output {
	case "json":
		if single && len(values) == 1 {
			err = writeJSON(w, values[0])
		} else {
			err = writeArray(w, values)
		}
	case "jsonl":
		for _, v := range values {
			if err = writeJSON(w, v); err != nil {
				break
			}
		}
	default:
		err = writeTable(w, shortTasks(rows(), r.env.Width), r.env.Width)
	}
	if err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	return w.Flush()
}

// done says that something was done: in words, or as value with -o.
func (r *run) done(words string, value any) error {
	if r.g.Output != "table" {
		return writeJSON(r.env.Stdout, value)
	}
	return r.writeln(words)
}

// printList prints a list as print does. Of an empty table only words are left,
// on stderr: a heading over nothing reads like a fault.
func (r *run) printList(values []any, rows [][]string, none string) error {
	if r.g.Output == "table" && len(rows) < 2 {
		if none != "" {
			fmt.Fprintln(r.env.Stderr, "mcptasks: "+safe.Line(none))
		}
		return nil
	}
	return r.print(values, false, func() [][]string { return rows })
}

func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(safe.JSON(b.Bytes()))
	return err
}

// writeArray streams an array, a line an element, so that a reader of ten
// thousand tasks need not wait for the last.
func writeArray(w io.Writer, values []any) error {
	if len(values) == 0 {
		_, err := io.WriteString(w, "[]\n")
		return err
	}
	for i, v := range values {
		sep := ",\n "
		if i == 0 {
			sep = "["
		}
		var b strings.Builder
		if err := writeJSON(&b, v); err != nil {
			return err
		}
		if _, err := io.WriteString(w, sep+strings.TrimRight(b.String(), "\n")); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, "]\n")
	return err
}

// writeTable aligns columns by display width. The last column is cut only at a
// terminal's edge; width 0 cuts nothing.
func writeTable(w io.Writer, rows [][]string, width int) error {
	var widths []int
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if i < len(row)-1 { // there is a column behind it
				c = safe.Even(c)
				row[i] = c
			}
			widths[i] = max(widths[i], safe.Width(c))
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for i, c := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			if i < len(row)-1 {
				c = safe.PadRight(c, widths[i])
			}
			b.WriteString(c)
		}
		line := strings.TrimRight(b.String(), " ")
		if width > 0 {
			line = safe.Truncate(line, width, "…")
		}
		if _, err := io.WriteString(w, line+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// writeBlocks writes tables that an empty row parts, each aligned by itself.
func writeBlocks(w io.Writer, rows [][]string, width int) error {
	start := 0
	for i := 0; i <= len(rows); i++ {
		if i < len(rows) && len(rows[i]) > 0 {
			continue
		}
		if err := writeTable(w, rows[start:i], width); err != nil {
			return err
		}
		if i < len(rows) {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		start = i + 1
	}
	return nil
}
