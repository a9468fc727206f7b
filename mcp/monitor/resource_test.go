package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
)

func (c *fakeClient) ReadResource(ctx context.Context, uri string) (json.RawMessage, error) {
	if err := c.f.begin(ctx, "resource", uri); err != nil {
		return nil, err
	}
	if uri != "build://log" {
		return nil, mcp.ErrUnsupported
	}
	return json.RawMessage(`[{"uri":"build://log","text":"line"}]`), nil
}

func TestReadsAResource(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(taskmodel.GenCore)
		r := run(t, nil, []string{"ci"}, f)
		r.sleep(time.Second)
		got, err := r.m.ReadResource(t.Context(), "ci", "build://log")
		if err != nil || string(got) != `[{"uri":"build://log","text":"line"}]` {
			t.Errorf("got %s, %v", got, err)
		}
		if _, err := r.m.ReadResource(t.Context(), "ci", "other"); !errors.Is(err, mcp.ErrUnsupported) {
			t.Errorf("a refusal is %v", err)
		}
		if _, err := r.m.ReadResource(t.Context(), "nobody", "build://log"); !errors.Is(err, ErrNoServer) {
			t.Errorf("an unknown server is %v", err)
		}
	})
}
