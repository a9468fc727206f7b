package transport

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/mcp/jsonrpc"
)

// A server may ask about a call on the session's GET stream and drop the
// question where that is not open (2025-11-25 basic/transports, Listening for
// Messages from the Server), so a call waits for the stream, though not for ever
// and not for what is refused.
func TestACallWaitsForThePushStream(t *testing.T) {
	for _, tt := range []struct {
		name   string
		method string
		get    time.Duration // until the server opens the stream; negative: it refuses
		want   time.Duration // until the call reaches the server
	}{
		{"open at once", "tools/call", 0, 0},
		{"open after a while", "tools/call", time.Second, time.Second},
		{"a question comes with the result", "tasks/result", time.Second, time.Second},
		{"never open", "tools/call", time.Hour, firstPushWait},
		{"refused", "tools/call", -1, 0},
		{"a request that makes nobody ask", "tools/list", time.Hour, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newMemNet(t)
				calls := make(chan time.Time, 2)
				n.serve("srv", session(func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
					switch {
					case r.Method == http.MethodGet && tt.get < 0:
						http.Error(w, "no", 405)
					case r.Method == http.MethodGet:
						select {
						case <-time.After(tt.get):
							openEvents(w)
							<-r.Context().Done()
						case <-r.Context().Done():
						}
					default:
						calls <- time.Now()
						result(w, m, "{}")
					}
				}))
				c := dialMem(t, n, "legacy", HTTP{}, true)
				began := time.Now()
				if _, err := c.call(tt.method); err != nil {
					t.Fatal(err)
				}
				if d := (<-calls).Sub(began); d != tt.want {
					t.Errorf("the call came after %s, want %s", d, tt.want)
				}
				began = time.Now()
				if _, err := c.call(tt.method); err != nil {
					t.Fatal(err)
				}
				if d := (<-calls).Sub(began); d != 0 {
					t.Errorf("the second call came after %s", d)
				}
			})
		})
	}
}
