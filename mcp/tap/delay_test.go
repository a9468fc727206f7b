//go:build unix

package tap

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
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
				t := <-made
				if mode == "tap-looking" {
					t.open.Add(1)
				}
				roundTrips(b, in, out, line)
				in.Close()
				<-end
				t.jobs.Wait() // it has much to read still; a tap's end waits a moment only
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

// BenchmarkHTTPRoundTrip is the same over HTTP, with the server and the tap as
// processes of their own, as an agent meets them: one message after the other
// without a pause, and with the pause that a program leaves that does something
// with an answer. The tap collects garbage as seldom as the command has it.
func BenchmarkHTTPRoundTrip(b *testing.B) {
	direct := aside(b, "echo")
	tapped := aside(b, "listen", b.TempDir(), direct)
	for _, pause := range []time.Duration{0, 5 * time.Millisecond} {
		for _, size := range []int{200, 64 << 10} {
			body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"s":"` + strings.Repeat("x", size) + `"}}}`
			for _, way := range [][2]string{{"direct", direct}, {"tap", tapped}} {
				b.Run(fmt.Sprintf("%s/%d/pause=%v", way[0], size, pause), func(b *testing.B) {
					var took []time.Duration
					for b.Loop() {
						begin := time.Now()
						res, err := http.Post(way[1], "application/json", strings.NewReader(body))
						if err != nil {
							b.Fatal(err)
						}
						_, _ = io.Copy(io.Discard, res.Body)
						res.Body.Close()
						took = append(took, time.Since(begin))
						time.Sleep(pause)
					}
					report(b, took)
				})
			}
		}
	}
}

// aside runs a program of this binary's that prints its URL, until the
// benchmark's end.
func aside(b *testing.B, mode string, args ...string) string {
	b.Helper()
	p := program(mode, args...)
	cmd := exec.Command(p[0], p[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	cmd.Stderr, cmd.Env = os.Stderr, append(os.Environ(), "GOGC=400")
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(line)
}
