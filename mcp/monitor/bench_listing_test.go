package monitor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"mcptasks/mcp/transport"
	"mcptasks/taskmodel/journal"
)

// pagesServer speaks as much of 2025-11-25 as a listing needs. Its pages are
// made before, so that what is measured is the other side.
func pagesServer(b *testing.B, tasks, page int) string {
	now := time.Now().UTC()
	rows := make([]json.RawMessage, tasks)
	for i := range rows {
		status, text := "completed", "All steps are done"
		if i%4 == 0 {
			status, text = "working", fmt.Sprintf("Copying part %d of 97", i%97)
		}
		rows[i], _ = json.Marshal(map[string]any{
			"taskId": fmt.Sprintf("%08d-5f3a-4c1e-9b7d-2a6f0c8e4d10", i), "status": status, "statusMessage": text,
			"createdAt":     now.Add(-time.Duration(i) * time.Second).Format(time.RFC3339Nano),
			"lastUpdatedAt": now.Format(time.RFC3339Nano), "ttl": 7_200_000, "pollInterval": 60_000,
		})
	}
	var pages [][]byte
	for from := 0; from < tasks; from += page {
		p := map[string]any{"tasks": rows[from:min(from+page, tasks)]}
		if from+page < tasks {
			p["nextCursor"] = strconv.Itoa(len(pages) + 1)
		}
		raw, _ := json.Marshal(p)
		pages = append(pages, raw)
	}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Cursor string }
		}
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		if len(m.ID) == 0 {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		result := []byte("{}")
		switch m.Method {
		case "initialize":
			w.Header().Set("Mcp-Session-Id", "s")
			result = []byte(`{"protocolVersion":"2025-11-25","serverInfo":{"name":"pages","version":"1"},"capabilities":{"tasks":{"list":{},"cancel":{}}}}`)
		case "tasks/list":
			i, _ := strconv.Atoi(m.Params.Cursor)
			result = pages[i]
		case "ping":
		default:
			if r.Header.Get("Mcp-Session-Id") == "" {
				w.WriteHeader(http.StatusBadRequest)
			}
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID)
			return
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	})
	s := httptest.NewServer(h)
	b.Cleanup(s.Close)
	return s.URL
}

// bareListing asks the same requests, one after the other, and does nothing
// with the answers but find the next cursor: what a listing costs at least.
func bareListing(b *testing.B, url string) {
	for cursor := ""; ; {
		params := map[string]any{}
		if cursor != "" {
			params["cursor"] = cursor
		}
		body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tasks/list", "params": params})
		req, _ := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		raw, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			b.Fatal(err)
		}
		var page struct {
			Result struct{ NextCursor string }
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			b.Fatal(err)
		}
		if cursor = page.Result.NextCursor; cursor == "" {
			return
		}
	}
}

// All of a server's tasks on the board, from the start of the monitor, against
// the bare loop of the same requests (issue H: no more than 1.3 times that).
func BenchmarkListing(b *testing.B) {
	for _, c := range []struct {
		tasks, page int
		journal     bool
	}{{6_000, 50, false}, {6_000, 50, true}, {100_000, 1000, true}} {
		b.Run(fmt.Sprintf("tasks=%d/page=%d/journal=%v", c.tasks, c.page, c.journal), func(b *testing.B) {
			url := pagesServer(b, c.tasks, c.page)
			bareListing(b, url)
			var bare, ours time.Duration
			for b.Loop() {
				from := time.Now()
				bareListing(b, url)
				bare += time.Since(from)

				o := Options{Seed: 1, Servers: []ServerSpec{{Name: "ci", Target: "t", Autostart: true, Dialer: &transport.HTTP{URL: url}}}}
				if c.journal {
					j, err := journal.Open(b.TempDir(), journal.Options{})
					if err != nil {
						b.Fatal(err)
					}
					o.Journal = j
				}
				ctx, stop := context.WithCancel(context.Background())
				done := make(chan error, 1)
				from = time.Now()
				m := New(o)
				go func() { done <- m.Run(ctx) }()
				for m.Board().Len() < c.tasks || m.Board().Servers()[0].Listing {
					<-m.Dirty()
				}
				ours += time.Since(from)
				stop()
				<-done
				if o.Journal != nil {
					_ = o.Journal.(*journal.Journal).Close(context.Background())
				}
			}
			b.ReportMetric(float64(bare.Microseconds())/1000/float64(b.N), "bare-ms")
			b.ReportMetric(float64(ours.Microseconds())/1000/float64(b.N), "listing-ms")
			b.ReportMetric(float64(ours)/float64(bare), "ratio")
		})
	}
}
