package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"mcptasks/mcp/transport"
)

// 2025-11-25 basic, "Requests": an id must not have been used before within the
// session, which is longer than a connection where it is taken up again.
func TestIDsOfAResumedSessionAreNew(t *testing.T) {
	var ids []string
	f := newFakeHTTP(t, func(method, rpc string, h http.Header) reply {
		if method != "POST" {
			return reply{status: 405}
		}
		return reply{status: 200, body: `{"jsonrpc":"2.0","id":$id,"result":{}}`}
	})
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	var init struct{ Result json.RawMessage }
	if err := json.Unmarshal([]byte(strings.ReplaceAll(initResult, "$id", "1")), &init); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		cl, err := Connect(ctx, Options{Name: "srv", Dialer: &transport.HTTP{URL: f.URL}, Session: "old", Version: "2025-11-25", SessionInit: init.Result})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			ids = append(ids, string(cl.s.peer.NewID()))
		}
		_ = cl.Close(ctx, false)
	}
	slices.Sort(ids)
	if n := len(slices.Compact(slices.Clone(ids))); n != 6 {
		t.Errorf("ids were used again: %v", ids)
	}
	for _, id := range ids {
		if !strings.HasPrefix(id, `"`) {
			t.Errorf("%s may be one of a connection that made the session", id)
		}
	}
}
