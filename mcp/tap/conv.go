package tap

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"

	"mcptasks/mcp/jsonrpc"
)

// Header fields of MCP over HTTP.
const (
	headerSession = "Mcp-Session-Id"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
)

// A conv is one agent's session over HTTP.
type conv struct {
	name   string // unique here
	legacy bool   // HTTP+SSE: answers come on the one stream

	mu    sync.Mutex
	route *route // as the agent's last message went
}

// key is the conversation's name; stdio has but one, "".
func (c *conv) key() string {
	if c == nil {
		return ""
	}
	return c.name
}

// A route is one exchange of the agent with the server, and the way for
// messages of ours to go to the same place with the same sign-in.
type route struct {
	ctx      context.Context // of the exchange
	url      string
	header   http.Header
	exchange string     // sets ids apart where conversations are not told apart
	on       jsonrpc.ID // the request whose answer it carries; the reader's, who sets it for the agent's
}

func (c *conv) went(r *route) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.route = r
}

func (c *conv) way() *route {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.route
}

// convs are the conversations of a proxy. They are found by the session id,
// by the address that a legacy stream gave for messages, or by who the agent
// seems to be.
type convs struct {
	mu    sync.Mutex
	n     int
	by    map[string]*conv
	named map[string]*conv
}

// maxConvs bounds the conversations that are remembered.
const maxConvs = 10_000

func newConvs() *convs { return &convs{by: map[string]*conv{}, named: map[string]*conv{}} }

// fresh makes a conversation that nothing leads to yet.
func (s *convs) fresh() *conv {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	c := &conv{name: fmt.Sprint(s.n)}
	if len(s.named) >= maxConvs {
		clear(s.named)
		clear(s.by)
	}
	s.named[c.name] = c
	return c
}

// lead has key lead to c from now on.
func (s *convs) lead(key string, c *conv) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by[key] = c
}

func (s *convs) find(key string) *conv {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[key]
}

func (s *convs) get(name string) *conv {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.named[name]
}

// of finds the conversation of a request, or makes one. apart is true when its
// ids are unique in this exchange only.
func (s *convs) of(r *http.Request) (c *conv, apart bool) {
	if id := r.Header.Get(headerSession); id != "" {
		return s.orFresh("session " + id), false
	}
	if c := s.find("endpoint " + r.URL.RequestURI()); c != nil {
		return c, false
	}
	return s.orFresh("agent " + who(r)), true
}

func (s *convs) orFresh(key string) *conv {
	if c := s.find(key); c != nil {
		return c
	}
	c := s.fresh()
	s.lead(key, c)
	return c
}

// who tells agents without a session apart as well as it can be done.
func who(r *http.Request) string {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	sum := sha256.Sum256([]byte(strings.Join([]string{r.Header.Get("Authorization"), r.UserAgent(), host}, "\x00")))
	return hex.EncodeToString(sum[:8])
}
