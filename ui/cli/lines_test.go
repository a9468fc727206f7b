package cli

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestLines(t *testing.T) {
	l := NewLines(strings.NewReader("one\r\n\nlast"))
	for _, want := range []string{"one", "", "last"} {
		if got, err := l.Read(t.Context()); got != want || err != nil {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	if _, err := l.Read(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

// A read that is given up loses nothing: the line is the next reader's.
func TestLinesCanBeGivenUp(t *testing.T) {
	in, typed := io.Pipe()
	l := NewLines(in)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	for range 2 {
		if _, err := l.Read(ctx); !errors.Is(err, why) {
			t.Errorf("given up: %v", err)
		}
	}
	go func() { _, _ = typed.Write([]byte("kept\n")) }()
	if got, err := l.Read(t.Context()); got != "kept" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	_ = typed.Close()
	if _, err := l.Read(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}
