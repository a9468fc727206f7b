// Package peers starts, for tests, MCP servers that nobody here wrote. They are
// installed by the script beside this file into a folder that the environment
// variable MCPTASKS_PEERS names; peers.json there says how each is started.
//
// It imports the standard library only and is imported by tests only.
package peers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A Peer is one entry of peers.json. URL is empty for a stdio peer; {port} in
// any string stands for the port that Serve picks.
type Peer struct {
	Command []string          `json:"command"`
	Env     map[string]string `json:"env"`
	URL     string            `json:"url"`
	Missing string            `json:"missing"` // why it could not be installed here
}

// Get finds a peer by its name. It skips the test when MCPTASKS_PEERS is not
// set or the peer cannot be had on this machine, and fails it when it is set and
// lacks the peer.
func Get(t testing.TB, name string) Peer {
	t.Helper()
	dir := os.Getenv("MCPTASKS_PEERS")
	if dir == "" {
		t.Skipf("needs the peer %s: run mcp/peers/install FOLDER and set MCPTASKS_PEERS=FOLDER", name)
	}
	b, err := os.ReadFile(filepath.Join(dir, "peers.json"))
	if err != nil {
		t.Fatalf("MCPTASKS_PEERS is set, but the peers cannot be read: %v", err)
	}
	var all map[string]Peer
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatalf("peers.json in MCPTASKS_PEERS: %v", err)
	}
	p, ok := all[name]
	if !ok {
		t.Fatalf("peers.json in MCPTASKS_PEERS has no %s: run mcp/peers/install again", name)
	}
	if p.Missing != "" {
		t.Skipf("the peer %s is not there: %s", name, p.Missing)
	}
	return p
}

// Command gives the command line of a stdio peer.
func Command(t testing.TB, name string) []string {
	t.Helper()
	return Get(t, name).Command
}

// Serve is Start for those who need no more than the URL.
func Serve(t testing.TB, name string) string {
	t.Helper()
	return Start(t, name).URL
}

// answers asks until the server gives any HTTP answer.
func answers(ctx context.Context, url string) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodOptions, url, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(r)
		if err == nil {
			return resp.Body.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (last: %v)", ctx.Err(), err)
		case <-tick.C:
		}
	}
}
