package mcp

import (
	"slices"
	"sync"

	"mcptasks/mcp/jsonrpc"
)

// calls are our requests in flight during which a server may ask something: on
// Streamable HTTP a question comes on the stream of the request that it
// belongs to, and says by that whose it is even without metadata.
type calls struct {
	mu   sync.Mutex
	byID map[jsonrpc.ID]callInfo
	left []jsonrpc.ID // tasks/result that nobody here waits for any more; the server was not told
}

// leftMost bounds calls.left; the oldest go first.
const leftMost = 64

type callInfo struct {
	tool, task string
	told       bool // the server knows that the answer is not wanted any more
}

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

// leave notes that nobody waits for the answer to a tasks/result any more, and
// that the server may still be at it.
func (c *calls) leave(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.left) == leftMost {
		c.left = slices.Delete(c.left, 0, 1)
	}
	if !c.byID[id].told {
		c.left = append(c.left, id)
	}
	delete(c.byID, id)
}

// results gives the tasks/result that the server may still be at, each once: the
// caller tells it.
func (c *calls) results() []jsonrpc.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.left
	c.left = nil
	for id, i := range c.byID {
		if i.task != "" && !i.told {
			i.told = true
			c.byID[id] = i
			out = append(out, id)
		}
	}
	return out
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
