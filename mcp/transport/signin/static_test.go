package signin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/zalando/go-keyring"

	"mcptasks/mcp/transport"
)

func TestMain(m *testing.M) {
	if f := os.Getenv("SIGNIN_TEST_TOKEN_COMMAND"); f != "" {
		tokenCommand(f)
		return
	}
	os.Exit(m.Run())
}

// tokenCommand counts its runs in the file and prints a token with the count.
func tokenCommand(file string) {
	b, _ := os.ReadFile(file)
	n := len(b) + 1
	os.WriteFile(file, append(b, '.'), 0o600)
	fmt.Fprintln(os.Stderr, "secret-noise")
	switch os.Getenv("MODE") {
	case "fail":
		fmt.Println("secret-half")
		os.Exit(3)
	case "empty":
	case "same":
		fmt.Println("secret-same")
	default:
		fmt.Printf("\nsecret-%d\nmore\n", n)
	}
}

func command(t *testing.T, mode string) (*commandToken, func() int) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := filepath.Join(t.TempDir(), "runs")
	t.Setenv("SIGNIN_TEST_TOKEN_COMMAND", f)
	t.Setenv("MODE", mode)
	return Command("ci", []string{self}).(*commandToken), func() int { b, _ := os.ReadFile(f); return len(b) }
}

func TestEnv(t *testing.T) {
	a := Env("ci", "SIGNIN_TEST_X")
	t.Setenv("SIGNIN_TEST_X", " secret-1 ")
	h, err := a.Header(t.Context())
	if err != nil || h.Get("Authorization") != "Bearer secret-1" {
		t.Error(h, err)
	}
	for _, bad := range []string{"", "a b", "a\nb", "ż"} {
		t.Setenv("SIGNIN_TEST_X", bad)
		if _, err := a.Header(t.Context()); err == nil || !strings.Contains(err.Error(), "SIGNIN_TEST_X") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if retry, err := a.Challenge(t.Context(), 401, nil); retry || err == nil || strings.Contains(err.Error(), "secret-") {
		t.Error(retry, err)
	}
	if retry, err := a.Challenge(t.Context(), 403, nil); retry || err != nil {
		t.Error(retry, err)
	}
}

func TestTokenCommand(t *testing.T) {
	c, runs := command(t, "")
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if h, err := c.Header(context.Background()); err != nil || h.Get("Authorization") != "Bearer secret-1" {
				t.Error(h, err)
			}
		})
	}
	wg.Wait()
	if runs() != 1 {
		t.Errorf("%d runs", runs())
	}
	// Just run: the refused request may have had no token yet.
	if retry, err := c.Challenge(t.Context(), 401, nil); !retry || err != nil || runs() != 1 {
		t.Error(retry, err)
	}
	c.ran = c.ran.Add(-commandAgain)
	if retry, err := c.Challenge(t.Context(), 401, nil); !retry || err != nil || runs() != 2 {
		t.Error(retry, err)
	}
	if h, _ := c.Header(t.Context()); h.Get("Authorization") != "Bearer secret-2" {
		t.Error(h)
	}
	if retry, err := c.Challenge(t.Context(), 403, nil); retry || err != nil || runs() != 2 {
		t.Error(retry, err)
	}
}

func TestTokenCommandFails(t *testing.T) {
	for mode, want := range map[string]string{"fail": "exit status 3", "empty": "no token"} {
		c, runs := command(t, mode)
		for range 5 {
			_, err := c.Header(t.Context())
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret-") {
				t.Error(err)
			}
		}
		if runs() != 1 {
			t.Errorf("%s: %d runs", mode, runs())
		}
	}
	c, _ := command(t, "same")
	c.Header(t.Context())
	c.ran = c.ran.Add(-commandAgain)
	if retry, err := c.Challenge(t.Context(), 401, nil); retry || err == nil || !strings.Contains(err.Error(), "refuses the token") {
		t.Error(retry, err)
	}
	if _, err := Command("ci", nil).Header(t.Context()); err == nil {
		t.Error("an empty command is no error")
	}
	if _, err := Command("ci", []string{"/no/such/program"}).Header(t.Context()); err == nil {
		t.Error("a missing command is no error")
	}
}

func TestStores(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tokens")
	check := func(t *testing.T, s Store) {
		t.Helper()
		if _, err := s.Load("https://a/mcp"); !errors.Is(err, ErrNoSecret) {
			t.Error(err)
		}
		if err := s.Delete("https://a/mcp"); err != nil {
			t.Error(err)
		}
		for _, v := range []string{"secret-1", "secret-2"} {
			if err := s.Save("https://a/mcp", v); err != nil {
				t.Fatal(err)
			}
			if got, err := s.Load("https://a/mcp"); err != nil || got != v {
				t.Error(got, err)
			}
		}
		if _, err := s.Load("https://b/mcp"); !errors.Is(err, ErrNoSecret) {
			t.Error(err)
		}
	}
	files := func() (n int) {
		es, _ := os.ReadDir(dir)
		for _, e := range es {
			n++
			fi, _ := e.Info()
			if runtime.GOOS != "windows" && fi.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %v", e.Name(), fi.Mode())
			}
		}
		return n
	}
	keyring.MockInit()
	t.Run("keyring", func(t *testing.T) {
		s := OpenStore(dir, nil)
		check(t, s)
		if files() != 0 {
			t.Error("a file beside the keyring")
		}
		if err := s.Delete("https://a/mcp"); err != nil {
			t.Error(err)
		}
	})
	keyring.MockInitWithError(errors.New("no secret service"))
	t.Run("no keyring", func(t *testing.T) {
		s := OpenStore(dir, nil)
		check(t, s)
		if files() != 1 {
			t.Errorf("%d files", files())
		}
	})
	keyring.MockInit()
	t.Run("keyring comes back", func(t *testing.T) {
		s := OpenStore(dir, nil)
		if got, err := s.Load("https://a/mcp"); err != nil || got != "secret-2" {
			t.Error(got, err)
		}
		if err := s.Save("https://a/mcp", "secret-3"); err != nil || files() != 0 {
			t.Error(err, files())
		}
		if got, err := s.Load("https://a/mcp"); err != nil || got != "secret-3" {
			t.Error(got, err)
		}
		if err := s.Delete("https://a/mcp"); err != nil {
			t.Error(err)
		}
	})
	if err := (Files{Dir: "/proc/none"}).Save("k", "v"); err == nil {
		t.Error("an unwritable folder is no error")
	}
}

func TestNewClientRedirects(t *testing.T) {
	c, err := NewClient(transport.TLS{})
	if err != nil {
		t.Fatal(err)
	}
	req := func(method, u string) *http.Request {
		r, err := http.NewRequest(method, u, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, tc := range []struct {
		method, from, to string
		follow           bool
	}{
		{"GET", "https://a/x", "https://b/y", true}, {"GET", "https://a/x", "http://a/x", false}, {"POST", "https://a/x", "https://a/y", false},
		{"GET", "https://a/x", "https://127.0.0.1/x", false}, {"GET", "http://localhost/x", "http://[::1]/x", true},
	} {
		if err := c.CheckRedirect(req("GET", tc.to), []*http.Request{req(tc.method, tc.from)}); (err == nil) != tc.follow {
			t.Errorf("%+v: %v", tc, err)
		}
	}
	if err := OpenBrowser("file:///etc/passwd"); err == nil {
		t.Error("a file was opened")
	}
}
