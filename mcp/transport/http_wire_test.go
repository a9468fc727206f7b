package transport

import (
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"

	"mcptasks/mcp/jsonrpc"
)

// A JSON-RPC error in the body of an HTTP error is a message: the wire log has
// it as the answer to its request, once, with the method and the latency
// (2026-07-28 basic/transports/streamable-http: errors have their own status).
func TestErrorInTheBodyOfAnHTTPErrorIsAMessage(t *testing.T) {
	for name, c := range map[string]struct {
		body    string
		message bool
	}{
		"JSON-RPC":   {`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, true},
		"without id": {`{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":null}`, true},
		"other JSON": {`{"detail":"no such thing"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newMemNet(t)
				n.serve("srv", session(func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
					if c.body != "" && name != "JSON-RPC" {
						writeJSON(w, 404, "%s", c.body)
						return
					}
					writeJSON(w, 404, c.body, m.ID)
				}))
				conf := HTTP{URL: "http://srv/mcp", Client: n.client()}
				conn, err := conf.Dial(t.Context(), "legacy")
				if err != nil {
					t.Fatal(err)
				}
				var mu sync.Mutex
				var seen []jsonrpc.Traffic
				h := newPeerHandler()
				p := jsonrpc.NewPeer(conn, h, jsonrpc.PeerOptions{Traffic: func(x jsonrpc.Traffic) {
					mu.Lock()
					defer mu.Unlock()
					if !x.Out && x.Method != "initialize" {
						seen = append(seen, x)
					}
				}})
				if err := p.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				defer func() {
					_ = p.Close(t.Context())
					conf.Client.CloseIdleConnections()
				}()
				if _, err := p.Call(t.Context(), jsonrpc.Call{Method: "initialize"}); err != nil {
					t.Fatal(err)
				}
				_, err = p.Call(t.Context(), jsonrpc.Call{Method: "tasks/get"})
				var st *StatusError
				if !errors.As(err, &st) || st.Status != 404 {
					t.Fatalf("err = %v", err)
				}
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				if len(seen) != 1 {
					t.Fatalf("%d entries: %+v", len(seen), seen)
				}
				x := seen[0]
				if c.message && (x.Kind != jsonrpc.KindResponse || x.Method != "tasks/get" || x.ID == "" || x.Fault != "HTTP 404 Not Found") {
					t.Errorf("%+v", x)
				}
				if !c.message && x.Kind != jsonrpc.KindInvalid {
					t.Errorf("%+v", x)
				}
			})
		})
	}
}
