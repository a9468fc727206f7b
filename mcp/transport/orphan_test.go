package transport

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

// starter is a program that starts a server which does not heed the end of its
// stdin, and says which process that is. Many of its threads come and go.
func starter() {
	self, err := os.Executable()
	if err != nil {
		fmt.Println(err)
		return
	}
	s := &Stdio{Command: self, Env: append(os.Environ(), "TRANSPORT_TEST_CHILD=unmoved")}
	conn, err := s.Dial(context.Background(), "")
	if err != nil {
		fmt.Println(err)
		return
	}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(runtime.LockOSThread) // which ends the thread
	}
	wg.Wait()
	runtime.GC()
	fmt.Println(conn.(*stdioConn).PID())
	time.Sleep(3 * time.Minute)
}
