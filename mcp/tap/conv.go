package tap

import (
	"context"
	"net/http"
	"sync"

	"mcptasks/mcp/jsonrpc"
)

// A conv is one agent's session over HTTP.
type conv struct {
	name string // unique here; "" is never one's name
	ctx  context.Context

	mu    sync.Mutex
	route route // as the agent last went
}

// key is the conversation's name; stdio has but one, "".
func (c *conv) key() string {
	if c == nil {
		return ""
	}
	return c.name
}

// A route is how a request of the agent went to the server, for ours to go the
// same way.
type route struct {
	url      string
	header   http.Header
	exchange string     // the modern era: sets the ids of one exchange apart
	on       jsonrpc.ID // the request whose answer's stream it is
}
