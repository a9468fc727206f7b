package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"mcptasks/taskmodel"
	"mcptasks/ui/safe"
)

// printOutcome writes a result: as JSON the payload untouched, else its text
// with a line for each other block.
func (s *session) printOutcome(k taskmodel.Key, server string, o taskmodel.Outcome, withTask bool) error {
	if o.Note != "" {
		fmt.Fprintln(s.env.Stderr, "mcptasks: "+safe.Line(o.Note))
	}
	if o.TooLarge > 0 {
		return failf("failed", server, "the result has %d bytes, more than is kept here: mcptasks result %s --save DIR fetches it to files", o.TooLarge, k)
	}
	if s.g.Output != "table" {
		j := shapeOutcome(k, server, o)
		if withTask {
			t := s.shape(k, true)
			j.Task = &t
		}
		return writeJSON(s.env.Stdout, j)
	}
	return writeOutcome(s.env.Stdout, o)
}

// A block is one content block, as much of it as its line needs.
type block struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Data     string          `json:"data"`
	MimeType string          `json:"mimeType"`
	URI      string          `json:"uri"`
	Name     string          `json:"name"`
	Size     *int64          `json:"size"`
	Resource json.RawMessage `json:"resource"`
}

func writeOutcome(w io.Writer, o taskmodel.Outcome) error {
	if o.Err != nil {
		_, err := fmt.Fprintf(w, "error %d: %s\n", o.Err.Code, strings.TrimRight(safe.Text(o.Err.Message), "\n"))
		return err
	}
	var r struct {
		Content    *[]block        `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
	}
	if json.Unmarshal(o.Result, &r) != nil || r.Content == nil && r.Structured == nil {
		// No tool result: shown raw, and said so by the caller's note.
		_, err := fmt.Fprintln(w, indent(o.Result))
		return err
	}
	var b strings.Builder
	if r.IsError {
		b.WriteString("The tool reported an error:\n")
	}
	if r.Content != nil {
		for _, c := range *r.Content {
			b.WriteString(blockText(c) + "\n")
		}
	}
	if r.Structured != nil {
		b.WriteString(indent(r.Structured) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func blockText(c block) string {
	switch c.Type {
	case "text":
		return strings.TrimRight(safe.Text(c.Text), "\n")
	case "image", "audio":
		return fmt.Sprintf("[%s %s, %s]", c.Type, safe.Line(c.MimeType), bytesWords(int64(len(c.Data))*3/4))
	case "resource_link":
		size := ""
		if c.Size != nil {
			size = ", " + bytesWords(*c.Size)
		}
		return fmt.Sprintf("[link %s %s%s]", safe.Line(c.Name), safe.Line(c.URI), size)
	case "resource":
		var res struct {
			URI, MimeType, Text, Blob string
		}
		if json.Unmarshal(c.Resource, &res) == nil && res.Text != "" {
			return fmt.Sprintf("[resource %s]\n%s", safe.Line(res.URI), strings.TrimRight(safe.Text(res.Text), "\n"))
		}
		return fmt.Sprintf("[resource %s %s, %s]", safe.Line(res.URI), safe.Line(res.MimeType), bytesWords(int64(len(res.Blob))*3/4))
	}
	return fmt.Sprintf("[%s]", orElse(safe.Line(c.Type), "a block without a type"))
}

func bytesWords(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1e6:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// indent shows JSON over several lines with control bytes taken out.
func indent(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return safe.Text(string(raw))
	}
	return safe.Text(b.String())
}
