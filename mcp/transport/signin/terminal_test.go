package signin

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
)

func TestTerminal(t *testing.T) {
	w := newWorld(t)
	o, _, _ := w.oauth(nil)
	// At the end of stdin the redirect is still waited for.
	var out bytes.Buffer
	p := Terminal(&out, strings.NewReader("\n"), false)
	p.Open = browser(t).Open
	if err := o.Login(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), w.as.URL+"/authorize?") {
		t.Errorf("shown: %s", out.String())
	}
}

func TestTerminalPasted(t *testing.T) {
	w := newWorld(t)
	o, _, _ := w.oauth(nil)
	follow := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	pages := make(chan string, 1)
	in := readerFunc(func(b []byte) (int, error) {
		res, err := follow.Get(<-pages)
		if err != nil {
			return 0, err
		}
		res.Body.Close()
		return copy(b, res.Header.Get("Location")+"\n"), nil
	})
	p := Terminal(&bytes.Buffer{}, in, false)
	p.Show = func(page string) { pages <- page }
	if err := o.Login(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }
