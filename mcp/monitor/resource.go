package monitor

import (
	"context"
	"encoding/json"

	"mcptasks/mcp"
)

// A resourceReader is a client that reads resources.
type resourceReader interface {
	ReadResource(ctx context.Context, uri string) (json.RawMessage, error)
}

// ReadResource reads a resource of a server (resources/read), for a person who
// follows a link in a result. It gives the contents as the server sent them and
// keeps nothing. It needs a connection of this process: a server that another
// process holds is not asked.
func (m *Monitor) ReadResource(ctx context.Context, server, uri string) (json.RawMessage, error) {
	s, err := m.server(server)
	if err != nil {
		return nil, err
	}
	if held, err := s.heldBy(ctx); err != nil {
		return nil, err
	} else if held {
		return nil, sentence(ErrUnreachable, nil, "%s: another process holds the connection; resources are read there", server)
	}
	var contents json.RawMessage
	err = s.read(ctx, func(ctx context.Context, c client) error {
		r, ok := c.(resourceReader)
		if !ok {
			return sentence(mcp.ErrUnsupported, nil, "%s: this connection reads no resources", server)
		}
		var err error
		contents, err = r.ReadResource(ctx, uri)
		return err
	})
	return contents, err
}
