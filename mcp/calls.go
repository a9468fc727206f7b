package mcp

import (
	"sync"

	"mcptasks/mcp/jsonrpc"
)

// calls are our requests in flight during which a server may ask something: on
// Streamable HTTP a question comes on the stream of the request that it
// belongs to, and says by that whose it is even without metadata.
type calls struct {
	mu   sync.Mutex
	byID map[jsonrpc.ID]callInfo
}

type callInfo struct{ tool, task string }

// begin notes a request that is about to be sent; the returned func ends that.
func (c *calls) begin(id jsonrpc.ID, tool, task string) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID == nil {
		c.byID = make(map[jsonrpc.ID]callInfo)
	}
	c.byID[id] = callInfo{tool: tool, task: task}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.byID, id)
	}
}

// tool is the tool that the request calls, "" when it is none of these.
func (c *calls) tool(id jsonrpc.ID) string { return c.get(id).tool }

// task is the task whose result the request waits for.
func (c *calls) task(id jsonrpc.ID) string { return c.get(id).task }

func (c *calls) get(id jsonrpc.ID) callInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byID[id]
}
