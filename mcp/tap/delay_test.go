//go:build unix

package tap

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkRoundTrip measures what a tap adds to a message that is answered at
// once: a line to a server and back, without a tap and with one, and the same
// while the tap looks for an answer of its own. The difference of the medians is
// the delay of two passes.
func BenchmarkRoundTrip(b *testing.B) {
	for _, size := range []int{200, 64 << 10} {
		line := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"s":"` + strings.Repeat("x", size) + "\"}}}\n"
		b.Run(fmt.Sprintf("direct/%d", size), func(b *testing.B) {
			cmd := exec.Command(program("lines")[0], program("lines")[1:]...)
			in, _ := cmd.StdinPipe()
			out, _ := cmd.StdoutPipe()
			if err := cmd.Start(); err != nil {
				b.Fatal(err)
			}
			roundTrips(b, in, out, line)
			in.Close()
			_ = cmd.Wait()
		})
		for _, mode := range []string{"tap", "tap-looking"} {
			b.Run(fmt.Sprintf("%s/%d", mode, size), func(b *testing.B) {
				theirIn, in, _ := os.Pipe()
				out, theirOut, _ := os.Pipe()
				made := make(chan *tap, 1)
				end := make(chan Exit)
				go func() {
					e, err := Stdio(b.Context(), Options{Command: program("lines"), In: theirIn, Out: theirOut, CloseOut: true, Name: "x", Target: target,
						Memory: memoryIn(b.TempDir()), made: func(t *tap) { made <- t }})
					if err != nil {
						b.Error(err)
					}
					end <- e
				}()
				if t := <-made; mode == "tap-looking" {
					t.open.Add(1)
				}
				roundTrips(b, in, out, line)
				in.Close()
				<-end
				out.Close()
				theirIn.Close()
			})
		}
	}
}

func roundTrips(b *testing.B, in io.Writer, out io.Reader, line string) {
	r := bufio.NewReaderSize(out, 1<<20)
	var took []time.Duration
	for b.Loop() {
		begin := time.Now()
		if _, err := io.WriteString(in, line); err != nil {
			b.Fatal(err)
		}
		if _, err := r.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
	}
	report(b, took)
}

func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs-median")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "µs-p99")
}

// BenchmarkHTTPRoundTrip is the same over HTTP.
func BenchmarkHTTPRoundTrip(b *testing.B) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.Copy(w, r.Body)
	}))
	defer srv.Close()
	r, w := io.Pipe()
	go func() {
		_ = HTTP(b.Context(), Options{URL: srv.URL + "/mcp", Listen: "127.0.0.1:0", Name: "x", Target: target, Out: w, Memory: memoryIn(b.TempDir())})
	}()
	buf := make([]byte, 100)
	n, err := r.Read(buf)
	if err != nil {
		b.Fatal(err)
	}
	for name, u := range map[string]string{"direct": srv.URL + "/mcp", "tap": strings.TrimSpace(string(buf[:n]))} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				begin := time.Now()
				res, err := http.Post(u, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`))
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				took = append(took, time.Since(begin))
			}
			report(b, took)
		})
	}
}
