package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// ReadResource reads a resource that a result links to (resources/read; in the
// modern era with the URI in Mcp-Name). It gives the contents as the server
// sent them: a list of objects, each with a uri, and text or a blob. A server
// that declares no resources is not asked: ErrUnsupported.
func (c *Client) ReadResource(ctx context.Context, uri string) (json.RawMessage, error) {
	s, doing := c.s, fmt.Sprintf("reading the resource %s", clip([]byte(uri)))
	if memberAt(s.getInfo().Capabilities, "resources") == nil {
		return nil, s.unsupported(doing, "it declares no resources")
	}
	params, header := s.modernParams(map[string]any{"uri": uri}, false)
	b, err := s.call(ctx, "resources/read", params, uri, header)
	if err != nil {
		return nil, err
	}
	// 2026-07-28 basic/patterns/mrtr: a read may ask for input first.
	if kind := stringAt(b, "resultType"); kind != "" && kind != "complete" {
		return nil, s.wrap(doing, fmt.Errorf("the server wants %q before it gives the resource, which cannot be answered here", kind))
	}
	contents := member(b, "contents")
	if !isArray(contents) {
		return nil, s.wrap(doing, errors.New("the answer has no list of contents"))
	}
	return contents, nil
}
