package signin

import (
	"net/http"
	"testing"
	"time"
)

// countingStore has nothing and counts who asks.
type countingStore struct{ loads int }

func (c *countingStore) Load(string) (string, error) { c.loads++; return "", ErrNoSecret }
func (*countingStore) Save(string, string) error     { return nil }
func (*countingStore) Delete(string) error           { return nil }

// A server that is asked every second or so and wants no token is no reason to
// ask the keyring as often, which may start a program each time. A refusal is.
func TestTheKeyringIsNotAskedAtEachRequest(t *testing.T) {
	now, kept := time.Unix(1_800_000_000, 0), &countingStore{}
	o, err := New(Config{Server: "ci", URL: "https://ci.example/mcp", Store: kept, Client: http.DefaultClient,
		Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(n, want int) {
		t.Helper()
		for range n {
			if h, err := o.Header(t.Context()); err != nil || len(h) != 0 {
				t.Fatalf("%v, %v", h, err)
			}
			now = now.Add(2300 * time.Millisecond)
		}
		if kept.loads != want {
			t.Errorf("asked %d times, want %d", kept.loads, want)
		}
	}
	ask(20, 1)
	if again, err := o.Challenge(t.Context(), http.StatusUnauthorized, nil); again || err == nil {
		t.Errorf("%v, %v", again, err)
	}
	ask(20, 2)
	ask(20, 3)
}
