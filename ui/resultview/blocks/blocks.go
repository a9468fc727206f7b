package blocks

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strconv"
	"strings"

	"mcptasks/ui/safe"
)

// A Result is what a call returned. The zero Result is an empty tool result.
type Result struct {
	Blocks     []Block
	Structured json.RawMessage // structuredContent; nil when there is none
	IsError    bool            // the tool itself says that it failed
	Raw        json.RawMessage // the whole, untouched
	Odd        string          // why this is no tool result, a sentence; then only Raw is of use
}

// A Block is one content block.
type Block struct {
	Index       int    // from 0
	Type        string // raw: text, image, audio, resource, resource_link, or another word
	MIME        string // raw
	Text        string // text, and the text of an embedded resource, raw
	URI         string // raw
	Name        string // raw
	Title       string // raw
	Description string // raw
	Size        int64  // in bytes, as said or counted; -1: not known
	Note        string // why it cannot be shown, a sentence
	Raw         json.RawMessage

	data []byte // base64, still in quotes
}

// Read reads a result. It never fails: what is no tool result is Odd.
func Read(raw json.RawMessage) Result {
	r := Result{Raw: raw}
	m, err := members(raw, "content", "structuredContent", "isError")
	if err != nil {
		r.Odd = "This is no tool result: " + err.Error() + "."
		return r
	}
	content, has := m["content"]
	r.Structured = m["structuredContent"]
	if string(r.Structured) == "null" {
		r.Structured = nil
	}
	r.IsError = string(m["isError"]) == "true"
	if !has {
		if r.Structured == nil {
			r.Odd = "This is no tool result: it has no content."
		}
		return r
	}
	s := Scanner{B: content}
	err = s.Array(func(v []byte) error {
		r.Blocks = append(r.Blocks, readBlock(len(r.Blocks), v))
		return nil
	}, 0)
	if err != nil {
		r.Odd = "This is no tool result: its content is no list of blocks."
	}
	return r
}

func readBlock(i int, raw []byte) Block {
	b := Block{Index: i, Raw: raw, Size: -1}
	m, err := members(raw, "type", "text", "data", "mimeType", "uri", "name", "title", "description", "size", "resource")
	if err != nil {
		b.Note = "This block is no object."
		return b
	}
	b.Type = Unquote(m["type"])
	b.fill(m)
	if res, ok := m["resource"]; ok && b.Type == "resource" {
		rm, err := members(res, "uri", "mimeType", "text", "blob", "name", "title")
		if err != nil {
			b.Note = "Its resource is no object."
			return b
		}
		b.fill(rm)
	}
	switch b.Type {
	case "text":
		if _, ok := m["text"]; !ok {
			b.Note = "It has no text."
		}
	case "image", "audio":
		if b.data == nil {
			b.Note = "It has no data."
		}
	case "resource", "resource_link":
	case "":
		b.Note = "It has no type."
	default:
		b.Note = "Blocks of this type are not known; the raw JSON has it."
	}
	return b
}

func (b *Block) fill(m map[string][]byte) {
	set := func(to *string, k string) {
		if v, ok := m[k]; ok {
			*to = Unquote(v)
		}
	}
	set(&b.MIME, "mimeType")
	set(&b.URI, "uri")
	set(&b.Name, "name")
	set(&b.Title, "title")
	set(&b.Description, "description")
	if v, ok := m["text"]; ok {
		b.Text = Unquote(v)
		b.Size = int64(len(b.Text))
	}
	for _, k := range []string{"data", "blob"} {
		if v, ok := m[k]; ok && len(v) >= 2 && v[0] == '"' {
			b.data = v
			n := len(v) - 2
			for n > 0 && v[n] == '=' {
				n--
			}
			b.Size = int64(n) * 3 / 4
		}
	}
	if v, ok := m["size"]; ok && b.Type == "resource_link" {
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil && n >= 0 {
			b.Size = n
		}
	}
}

// HasText reports whether the block is text to read.
func (b Block) HasText() bool { return b.Type == "text" || b.Type == "resource" && b.data == nil }

// HasData reports whether the block carries bytes.
func (b Block) HasData() bool { return b.data != nil }

// Bytes gives what the block carries: decoded data, or its text.
func (b Block) Bytes() ([]byte, error) {
	if b.data == nil {
		if b.HasText() {
			return []byte(b.Text), nil
		}
		return nil, errors.New("the block carries nothing itself")
	}
	text := strings.TrimRight(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == ' ' {
			return -1
		}
		return r
	}, Unquote(b.data)), "=")
	enc := base64.RawStdEncoding
	if strings.ContainsAny(text, "-_") {
		enc = base64.RawURLEncoding
	}
	out, err := enc.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("its data is no base64: %w", err)
	}
	return out, nil
}

// Kind is what the block is in a word or two.
func (b Block) Kind() string {
	switch b.Type {
	case "resource_link":
		return "link"
	case "resource":
		if b.data != nil {
			return "embedded file"
		}
		return "embedded text"
	case "":
		return "block without a type"
	}
	return safe.Line(b.Type)
}

// Line is the block on one line: kind, name, type and size.
func (b Block) Line() string {
	parts := []string{b.Kind()}
	add := func(s string) {
		if s = safe.Line(s); s != "" {
			parts = append(parts, s)
		}
	}
	switch {
	case b.Title != "":
		add(b.Title)
	case b.Name != "":
		add(b.Name)
	}
	add(b.URI)
	add(b.MIME)
	if b.Size >= 0 {
		add(Bytes(b.Size))
	}
	add(b.Note)
	return strings.Join(parts, "  ")
}

// Bytes writes a size: 812 B, 4.2 KB, 20 MB.
func Bytes(n int64) string {
	f, units := float64(n), []string{"B", "KB", "MB", "GB", "TB"}
	i := 0
	for ; f >= 1000 && i < len(units)-1; i++ {
		f /= 1024
	}
	if i == 0 || f >= 10 {
		return fmt.Sprintf("%.0f %s", f, units[i])
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}

// extensions are those of common types; the system's table differs from
// machine to machine.
var extensions = map[string]string{
	"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "image/svg+xml": ".svg",
	"audio/wav": ".wav", "audio/x-wav": ".wav", "audio/mpeg": ".mp3", "audio/ogg": ".ogg", "audio/flac": ".flac", "audio/mp4": ".m4a",
	"application/json": ".json", "application/pdf": ".pdf", "application/zip": ".zip", "application/gzip": ".gz", "application/xml": ".xml",
	"text/plain": ".txt", "text/markdown": ".md", "text/html": ".html", "text/csv": ".csv", "text/css": ".css", "text/xml": ".xml",
	"video/mp4": ".mp4", "video/webm": ".webm",
}

// Ext is the file extension for the block, with its dot.
func (b Block) Ext() string {
	t, _, err := mime.ParseMediaType(b.MIME)
	if err == nil {
		if e, ok := extensions[t]; ok {
			return e
		}
		if strings.HasSuffix(t, "+json") {
			return ".json"
		}
		if strings.HasPrefix(t, "text/") {
			return ".txt"
		}
	}
	if b.data != nil || b.Type == "image" || b.Type == "audio" {
		return ".bin"
	}
	if b.HasText() {
		if t := strings.TrimSpace(b.Text); (strings.HasPrefix(t, "{") || strings.HasPrefix(t, "[")) && len(t) < 1<<22 && json.Valid([]byte(t)) {
			return ".json"
		}
		return ".txt"
	}
	return ".json"
}
