package signin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Terminal is a Person at a terminal: the address is written to out, and what
// is typed or pasted into in counts as the end of the sign-in. browser says
// whether a browser is opened here as well. in may be nil.
func Terminal(out io.Writer, in io.Reader, browser bool) Person {
	p := Person{Show: func(page string) {
		fmt.Fprintf(out, "Sign in on this page:\n\n  %s\n\n", page)
		if in != nil {
			fmt.Fprint(out, "If your browser is on another machine, paste here the address at which it ends, then Enter.\n")
		}
	}}
	if browser {
		p.Open = OpenBrowser
	}
	if in != nil {
		p.Paste = func(ctx context.Context) (string, error) { return readLine(ctx, in) }
	}
	return p
}

// readLine gives the first line that is not blank. At the end of in it waits
// for ctx, because the redirect may still come by itself.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	type res struct {
		s   string
		err error
	}
	ch := make(chan res, 1)
	go func() {
		sc := bufio.NewScanner(io.LimitReader(in, 1<<20))
		sc.Buffer(nil, 64<<10)
		for sc.Scan() {
			if s := strings.TrimSpace(sc.Text()); s != "" {
				ch <- res{s, nil}
				return
			}
		}
		if err := sc.Err(); err != nil {
			ch <- res{"", fmt.Errorf("read what was pasted: %w", err)}
		}
	}()
	select {
	case r := <-ch:
		return r.s, r.err
	case <-ctx.Done():
		return "", errors.New("nothing was pasted")
	}
}
