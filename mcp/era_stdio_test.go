package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/mcp/jsonrpc"
	"mcptasks/mcp/transport"
	"mcptasks/taskmodel"
)

// A tiny server answers by method and can end itself.
type tinyServer struct {
	conn   jsonrpc.Conn
	answer func(method string) (body string, die bool)
}

func (s tinyServer) Failed(jsonrpc.ID, error) {}
func (s tinyServer) Noise(string, []byte)     {}
func (s tinyServer) Message(b json.RawMessage, _ string, _ jsonrpc.ID) {
	body, die := s.answer(stringAt(b, "method"))
	if body != "" {
		s.conn.Send(context.Background(), jsonrpc.Outgoing{Bytes: json.RawMessage(strings.ReplaceAll(body, "$id", string(member(b, "id"))))})
	}
	if die {
		go s.conn.Close(context.Background()) // it waits for this call to return
	}
}

// TestProgramDiesOfTheProbe: a program that does not survive a request that it
// does not know, at once or slowly, is started again and initialized; it is
// not probed a second time (2026-07-28 basic/transports/stdio, "Backward
// Compatibility": whatever an old server does with the probe, it is legacy).
func TestProgramDiesOfTheProbe(t *testing.T) {
	for _, c := range []struct {
		name  string
		first func(method string) (string, bool) // the first process
	}{
		{"at once", func(string) (string, bool) { return "", true }},
		{"after its answer", func(m string) (string, bool) {
			if m == "server/discover" {
				return noMethod, true
			}
			return "", false // on its way out, it answers nothing more
		}},
		{"at initialize, being slow", func(m string) (string, bool) { return "", m == "initialize" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var starts, probes atomic.Int32
				d := transport.PipeDialer(func(ctx context.Context, conn jsonrpc.Conn) {
					n := starts.Add(1)
					conn.Start(ctx, tinyServer{conn, func(m string) (string, bool) {
						if m == "server/discover" {
							probes.Add(1)
						}
						switch {
						case n == 1:
							return c.first(m)
						case m == "initialize":
							return initResult, false
						}
						return "", false
					}})
					<-ctx.Done()
				})
				cl, err := Connect(context.Background(), Options{Name: "srv", Dialer: d})
				if err != nil {
					t.Fatal(err)
				}
				if i := cl.Info(); i.Generation != taskmodel.GenCore || starts.Load() != 2 || probes.Load() != 1 {
					t.Errorf("%s after %d starts and %d probes", i.Generation, starts.Load(), probes.Load())
				}
				cl.Close(context.Background(), true)
				synctest.Wait()
			})
		})
	}
}

// TestSilentProgram: one that never says anything fails when the caller's time
// is over, in words, and is closed.
func TestSilentProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := transport.PipeDialer(func(ctx context.Context, conn jsonrpc.Conn) {
			conn.Start(ctx, tinyServer{conn, func(string) (string, bool) { return "", false }})
			<-ctx.Done()
		})
		ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
		defer stop()
		began := time.Now()
		_, err := Connect(ctx, Options{Name: "srv", Dialer: d, ProbeTimeout: time.Second})
		if !errors.Is(err, context.DeadlineExceeded) || err.Error() != "srv: opening the connection (initialize): gave up waiting for the answer" {
			t.Errorf("%v", err)
		}
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("took %s", took)
		}
		synctest.Wait()
	})
}
