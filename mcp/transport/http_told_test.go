package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"mcptasks/mcp/jsonrpc"
)

// A notification or an answer that is met with a page was not taken: a login or
// a proxy stands in the server's place. Any other 2xx takes it (2025-11-25
// basic/transports, Sending Messages 4).
func TestToldToAPage(t *testing.T) {
	for media, ok := range map[string]bool{"text/html; charset=utf-8": false, "text/plain": true, "application/json": true, "": true} {
		synctest.Test(t, func(t *testing.T) {
			n := newMemNet(t)
			n.serve("srv", session(func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
				if r.Method != http.MethodPost {
					http.Error(w, "no", 405)
					return
				}
				w.Header()["Content-Type"] = []string{media}
				fmt.Fprint(w, "{}")
			}))
			c := dialMem(t, n, "legacy", HTTP{}, true)
			err := c.Notify(context.Background(), "notifications/x", nil, nil)
			if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "text/html") {
				t.Errorf("%s: %v", media, err)
			}
		})
	}
}

// A resumption that is refused with 400 is about the stream, also where the
// words name the session (T1's 400 is that of a request).
func TestRefusedResumptionIsNoLostSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet(t)
		n.serve("srv", session(func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
			switch {
			case m.Method == "tasks/result":
				openEvents(w)("id: 1\ndata:\n\n")
			case r.Header.Get("Last-Event-ID") == "":
				http.Error(w, "no", 405)
			default:
				writeJSON(w, 400, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"no such stream of this session"}}`)
			}
		}))
		c := dialMem(t, n, "legacy", HTTP{}, true)
		_, err := c.call("tasks/result")
		var st *StatusError
		if err == nil || errors.As(err, &st) || !strings.Contains(err.Error(), "cannot be resumed") {
			t.Errorf("%v", err)
		}
	})
}
