package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"mcptasks/taskmodel"
	"mcptasks/ui/resultview/blocks"
	"mcptasks/ui/safe"
)

// printOutcome writes a result: as JSON the payload untouched, else its text
// with a line for each other block.
func (s *session) printOutcome(k taskmodel.Key, server string, o taskmodel.Outcome, withTask bool) error {
	if o.Note != "" {
		fmt.Fprintln(s.env.Stderr, "mcptasks: "+safe.Line(o.Note))
	}
	if o.TooLarge > 0 {
		return failf("failed", server, "the result has %s, more than is kept here: mcptasks result %s --save DIR fetches it to files", blocks.Bytes(o.TooLarge), k)
	}
	if s.g.Output != "table" {
		j := shapeOutcome(k, server, o)
		if withTask {
			t := s.shape(k, true)
			t.HasResult = true // it is being printed; the board may hear of it a moment later
			j.Task = &t
		}
		return writeJSON(s.env.Stdout, j)
	}
	return writeOutcome(s.env.Stdout, o)
}

// save writes every content block of a result to a file of its own and names
// the files.
func (s *session) save(k taskmodel.Key, o taskmodel.Outcome, dir string) error {
	if o.Err != nil {
		return s.printOutcome(k, k.Server, o, false)
	}
	paths, err := blocks.Read(o.Result).Save(dir)
	if s.g.Output != "table" {
		if err == nil {
			return writeJSON(s.env.Stdout, map[string]any{"server": k.Server, "taskId": k.ID, "files": paths})
		}
	} else {
		for _, p := range paths {
			fmt.Fprintln(s.env.Stdout, p)
		}
	}
	if err != nil {
		return failf("failed", k.Server, "%v", err)
	}
	return nil
}

func writeOutcome(w io.Writer, o taskmodel.Outcome) error {
	if o.Err != nil {
		_, err := fmt.Fprintf(w, "error %d: %s\n", o.Err.Code, strings.TrimRight(safe.Text(o.Err.Message), "\n"))
		return err
	}
	r := blocks.Read(o.Result)
	var b strings.Builder
	switch {
	case r.Odd != "":
		b.WriteString(r.Odd + "\n" + indent(o.Result) + "\n")
	case r.IsError:
		b.WriteString("The tool reported an error:\n")
	}
	for _, c := range r.Blocks {
		b.WriteString(blockText(c) + "\n")
	}
	if r.Structured != nil {
		b.WriteString(indent(r.Structured) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// blockText is a block's text, or one line about a block of another kind.
func blockText(b blocks.Block) string {
	if b.Type == "text" {
		return strings.TrimRight(safe.Text(b.Text), "\n")
	}
	line := "[" + safe.Line(b.Line()) + "]"
	if b.HasText() {
		line += "\n" + strings.TrimRight(safe.Text(b.Text), "\n")
	}
	return line
}

// indent shows JSON over several lines with control bytes taken out.
func indent(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return safe.Text(string(raw))
	}
	return safe.Text(b.String())
}
