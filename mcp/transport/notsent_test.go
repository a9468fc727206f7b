package transport

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcptasks/mcp/jsonrpc"
)

// Where there was no connection a message says that nothing of it went out, so
// that it may be sent again; where there was one it never says so, whatever
// became of it (2025-11-25 basic/transports, "Sending Messages to the Server":
// a response is taken with 202, and until then nobody knows).
func TestNothingWasSent(t *testing.T) {
	cut := func(*testing.T) http.Handler {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	}
	quiet := func(f func(http.Handler) *httptest.Server) func(*testing.T, http.Handler) *httptest.Server {
		return func(t *testing.T, h http.Handler) *httptest.Server {
			s := f(h)
			t.Cleanup(s.Close)
			return s
		}
	}
	plain, secure := quiet(httptest.NewServer), quiet(func(h http.Handler) *httptest.Server {
		s := httptest.NewUnstartedServer(h)
		s.EnableHTTP2 = true
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.StartTLS()
		return s
	})
	for _, tc := range []struct {
		name string
		conf func(t *testing.T) HTTP
		why  string // "": something may have gone out
	}{
		{"nobody listens", func(t *testing.T) HTTP {
			s := plain(t, cut(t))
			s.Close()
			return HTTP{URL: s.URL}
		}, " cannot be reached, "},
		{"no socket", func(t *testing.T) HTTP { return HTTP{URL: "unix://" + filepath.Join(t.TempDir(), "none")} }, "its socket is not there"},
		{"a certificate that is not trusted", func(t *testing.T) HTTP { return HTTP{URL: secure(t, cut(t)).URL} }, "not trusted here"},
		{"no time to connect", func(t *testing.T) HTTP {
			n := newMemNet(t)
			l := n.Listen("srv") // takes no connection
			t.Cleanup(func() { _ = l.Close() })
			return HTTP{URL: "http://srv/mcp", Client: n.client()}
		}, "srv was not reached in time"},
		{"cut off", func(t *testing.T) HTTP { return HTTP{URL: plain(t, cut(t)).URL} }, ""},
		{"cut off, HTTP/2", func(t *testing.T) HTTP {
			s := secure(t, cut(t))
			return HTTP{URL: s.URL, Client: s.Client()}
		}, ""},
		{"a client that tells nothing", func(t *testing.T) HTTP {
			return HTTP{URL: "http://srv/mcp", Client: &http.Client{Transport: lost{}}}
		}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			conf := tc.conf(t)
			conn, err := conf.Dial(t.Context(), "legacy")
			if err != nil {
				t.Fatal(err)
			}
			p := jsonrpc.NewPeer(conn, newPeerHandler(), jsonrpc.PeerOptions{})
			if err := p.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = p.Close(ctxFor(t)) })
			ctx, stop := ctxFor(t), func() {}
			if tc.name == "no time to connect" {
				ctx, stop = context.WithTimeout(t.Context(), 50*time.Millisecond)
			}
			defer stop()
			err = p.Notify(ctx, "x", nil, nil)
			var unsent *NotSentError
			switch {
			case err == nil:
				t.Error("no error")
			case errors.As(err, &unsent) != (tc.why != ""):
				t.Errorf("not sent: %v; %v", tc.why == "", err)
			case unsent != nil && !strings.Contains(unsent.Why(), tc.why):
				t.Errorf("%q", unsent.Why())
			}
		})
	}
}

type lost struct{}

func (lost) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("lost") }
