package mcp

import (
	"context"
	"slices"
	"testing"
	"time"
)

// 2025-11-25 basic/utilities/cancellation: a connection that closes and leaves
// its HTTP session alive withdraws each tasks/result that it has open or gave
// up, so that no question goes to a stream that nobody reads. A call for a task
// is never withdrawn so.
func TestCloseWithdrawsOpenResults(t *testing.T) {
	for name, first := range map[string]bool{"still open": false, "its wait ended before": true} {
		t.Run(name, func(t *testing.T) {
			f := newAskingHTTP(t, "7")
			c, h := connectAsking(t, f.URL, nil)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = c.Tasks().Result(ctx, "T")
			}()
			h.question()
			if first {
				stop()
				<-done
			}
			if w := f.withdrawn(); len(w) > 0 {
				t.Errorf("withdrawn before the end: %v", w)
			}
			c.Leave(t.Context())
			if got, want := f.withdrawn(), f.results(); !slices.Equal(got, want) {
				t.Errorf("withdrawn before the connection closes: %v, open were %v", got, want)
			}
			end, over := context.WithTimeout(context.Background(), 60*time.Second)
			defer over()
			if err := c.Close(end, false); err != nil {
				t.Fatal(err)
			}
			<-done
			if got, want := f.withdrawn(), f.results(); len(want) != 1 || !slices.Equal(got, want) {
				t.Errorf("withdrawn %v, open were %v", got, want)
			}
		})
	}
}
