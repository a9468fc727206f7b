//go:build unix

package tap

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mcptasks/mcp/demo"
	"mcptasks/mcp/proctest"
	"mcptasks/taskmodel"
	"mcptasks/taskmodel/journal"
)

// TestMain lets the test binary be a tap, and the servers behind it.
func TestMain(m *testing.M) {
	if mode := os.Getenv("TAP_TEST"); mode != "" {
		os.Exit(play(mode, os.Args[1:]))
	}
	// Most tests wait for a process, a poll or a timer, not for the processor.
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "6")
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		proctest.Clean()
		os.Exit(code)
	}))
}

// notify has SIGTERM delivered to c.
func notify(c chan<- os.Signal) { signal.Notify(c, syscall.SIGTERM) }

// program is this binary as something else. The environment of the tests must
// not have TAP_TEST; a tap hands it on, so the role of its server comes by an
// argument.
func program(mode string, args ...string) []string {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return append([]string{self, "as=" + mode}, args...)
}

// play is one role: "role" takes it from the arguments.
func play(mode string, args []string) int {
	if len(args) > 0 && strings.HasPrefix(args[0], "as=") {
		mode, args = args[0][3:], args[1:]
	}
	switch mode {
	case "tap":
		return playTap(args)
	case "cat":
		n, err := io.Copy(os.Stdout, os.Stdin)
		fmt.Fprintf(os.Stderr, "%d bytes", n)
		if err != nil {
			return 1
		}
	case "late": // writes only after the end of its input
		_, _ = io.Copy(io.Discard, os.Stdin)
		for range 1000 {
			fmt.Println(strings.Repeat("x", 1000))
		}
		return 3
	case "exit":
		n, _ := strconv.Atoi(args[0])
		fmt.Print("half a line")
		return n
	case "die":
		n, _ := strconv.Atoi(args[0])
		_ = syscall.Kill(os.Getpid(), syscall.Signal(n))
		time.Sleep(10 * time.Second)
	case "deaf": // heeds neither the end of its input nor SIGTERM, and has a child
		c := exec.Command(os.Args[0], "as=hang")
		_ = c.Start()
		fmt.Println(os.Getpid(), c.Process.Pid)
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
		time.Sleep(time.Hour)
	case "hang":
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
		time.Sleep(time.Hour)
	case "signals":
		c := make(chan os.Signal, 4)
		signal.Notify(c, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGINT)
		fmt.Println("ready")
		for s := range c {
			fmt.Println(s)
			if s == syscall.SIGTERM {
				return 9
			}
		}
	case "agent": // starts a tap and is to be killed
		c := exec.Command(args[0], args[1:]...)
		c.Stdout = os.Stdout
		in, _ := c.StdinPipe()
		defer in.Close()
		_ = c.Start()
		time.Sleep(time.Hour)
	case "demo":
		speed, _ := strconv.ParseFloat(args[1], 64)
		s := demo.New(demo.Options{Generation: taskmodel.Generation(args[0]), Speed: speed, Seed: 7})
		defer s.Close()
		if err := s.ServeStdio(context.Background(), os.Stdin, os.Stdout); err != nil {
			return 1
		}
	case "conformance": // STATE CLIENT… URL: runs the client on a tap before the URL
		ctx, stop := context.WithCancel(context.Background())
		r, w := io.Pipe()
		ended := make(chan error)
		go func() {
			ended <- HTTP(ctx, Options{URL: args[len(args)-1], Listen: "127.0.0.1:0", Name: "ci", Target: target, Out: w, Memory: memoryIn(args[0])})
		}()
		line, _ := bufio.NewReader(r).ReadString('\n')
		c := exec.Command(args[1], append(args[2:len(args)-1:len(args)-1], strings.TrimSpace(line))...)
		c.Env = append(os.Environ(), "RESOURCE="+args[len(args)-1])
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		err := c.Run()
		stop()
		<-ended
		if err != nil {
			return 1
		}
	case "starter":
		return playStarter(args)
	case "echo": // an HTTP server that answers with what it is sent
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.Copy(w, r.Body)
		}))
		defer srv.Close()
		fmt.Println(srv.URL + "/mcp")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "listen": // STATE URL: a tap in front of it, until its input ends
		ctx, stop := context.WithCancel(context.Background())
		go func() { _, _ = io.Copy(io.Discard, os.Stdin); stop() }()
		if err := HTTP(ctx, Options{URL: args[1], Listen: "127.0.0.1:0", Name: "ci", Target: target, Out: os.Stdout, Memory: memoryIn(args[0])}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	case "lines": // answers each line
		in := bufio.NewReader(os.Stdin)
		for {
			l, err := in.ReadString('\n')
			if err != nil {
				return 0
			}
			fmt.Print(l)
		}
	}
	return 0
}

// playTap is `mcptasks tap`: STATE FLAGS -- COMMAND ARG…
func playTap(args []string) int {
	o := Options{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, CloseOut: true, Signals: true, Env: os.Environ(),
		Name: "ci", Target: "the server", Memory: memoryIn(args[0])}
	for i, a := range args[1:] {
		switch a {
		case "--passive":
			o.Passive = true
		case "--answer":
			o.Answer = true
		case "--":
			o.Command = args[i+2:]
		}
		if a == "--" {
			break
		}
	}
	exit, err := Stdio(context.Background(), o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	exit.Die()
	return exit.Code
}

func memoryIn(dir string) func(context.Context) (Memory, error) {
	return func(context.Context) (Memory, error) {
		j, err := journal.Open(dir, journal.Options{What: "mcptasks tap"})
		if err != nil {
			return Memory{}, err
		}
		return Memory{Store: j, Close: j.Close}, nil
	}
}

func init() {
	// A role by argument, for what a tap starts.
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "as=") && os.Getenv("TAP_TEST") == "" {
		_ = os.Setenv("TAP_TEST", "role")
	}
}
