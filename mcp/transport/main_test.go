//go:build unix

package transport

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mcptasks/mcp/jsonrpc"
)

// TestMain lets the test binary be the program that the stdio tests start.
func TestMain(m *testing.M) {
	if mode := os.Getenv("TRANSPORT_TEST_CHILD"); mode != "" {
		child(mode)
		return
	}
	goleak.VerifyTestMain(m)
}

// child is one badly or well behaved server.
func child(mode string) {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	next := func() (jsonrpc.Message, bool) {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return jsonrpc.Message{}, false
		}
		m, _ := jsonrpc.Decode(line, 0)
		return m, true
	}
	answer := func(id jsonrpc.ID, result string) {
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result)
	}
	echo := func() {
		for {
			m, ok := next()
			if !ok {
				return
			}
			if m.Kind == jsonrpc.KindRequest {
				r := string(m.Params)
				if r == "" {
					r = "{}"
				}
				answer(m.ID, r)
			}
		}
	}
	grandchild := func(mode string) *exec.Cmd {
		self, _ := os.Executable()
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), "TRANSPORT_TEST_CHILD="+mode)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(9)
		}
		return cmd
	}
	switch mode {
	case "starter":
		starter()
	case "unmoved":
		time.Sleep(3 * time.Minute) // does not heed the end of its stdin
	case "echo":
		echo()
	case "env":
		m, _ := next()
		wd, _ := os.Getwd()
		b, _ := json.Marshal(map[string]string{"X": os.Getenv("X"), "wd": wd})
		answer(m.ID, string(b))
		echo()
	case "big":
		m, _ := next()
		answer(m.ID, `"`+strings.Repeat("x", 20<<20)+`"`)
		echo()
	case "overlong", "overlong-last":
		m, _ := next()
		if mode == "overlong" {
			answer(m.ID, `"`+strings.Repeat("x", 3<<20)+`"`)
		} else {
			fmt.Printf(`{"result":"%s","id":%s,"jsonrpc":"2.0"}`+"\n", strings.Repeat("x", 3<<20), m.ID)
		}
		echo()
	case "noise":
		fmt.Print("\xEF\xBB\xBFstarting up\r\n\r\n")
		fmt.Println(`{"level":"info","method":"GET","id":1,"msg":"log line in JSON"}`)
		fmt.Println(`[INFO] ready`)
		fmt.Println(`"a string"`)
		fmt.Println(`{"jsonrpc":"2.0","id":1,"resu`)
		echo()
	case "stderr":
		for i := range 20000 {
			fmt.Fprintf(os.Stderr, "line %d %s\n", i, strings.Repeat("e", 100))
		}
		echo()
	case "exit3":
		next()
		fmt.Fprintln(os.Stderr, "config missing")
		fmt.Fprintln(os.Stderr, "giving up")
		os.Exit(3)
	case "kill":
		next()
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "stubborn": // ignores stdin's end and SIGTERM
		signal.Ignore(syscall.SIGTERM)
		m, _ := next()
		answer(m.ID, fmt.Sprint(os.Getpid()))
		for {
			time.Sleep(time.Hour)
		}
	case "parent": // leaves a stubborn grandchild behind that holds the pipes
		g := grandchild("grandchild")
		m, _ := next()
		answer(m.ID, fmt.Sprint(g.Process.Pid))
		if m.Method == "die" {
			os.Exit(7)
		}
		echo()
	case "grandchild":
		signal.Ignore(syscall.SIGTERM)
		for {
			time.Sleep(time.Hour)
		}
	case "deaf": // never reads
		fmt.Println(`{"jsonrpc":"2.0","method":"here"}`)
		time.Sleep(time.Hour)
	case "mute": // closes stdout, stays
		os.Stdout.Close()
		io.Copy(io.Discard, in)
		time.Sleep(time.Hour)
	case "unterminated":
		m, _ := next()
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"last":true}}`, m.ID)
	default:
		fmt.Fprintln(os.Stderr, "no such mode", mode)
		os.Exit(8)
	}
}
