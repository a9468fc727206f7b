package monitor

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"mcptasks/mcp"
	"mcptasks/taskmodel"
)

// TestFailuresTravel: what the holder of a server met is told apart by the
// process that asked, as if it had met it itself.
func TestFailuresTravel(t *testing.T) {
	for name, kind := range errorKinds {
		met := fmt.Errorf("ci: cancelling task 7: %w", kind)
		got := readFailure("words (by watch)", describeFailure(met))
		if !errors.Is(got, kind) || got.Error() != "words (by watch)" {
			t.Errorf("%s: %v", name, got)
		}
		for other, k := range errorKinds {
			if errors.Is(got, k) != errors.Is(met, k) {
				t.Errorf("%s taken for %s", name, other)
			}
		}
	}
	rpc := &taskmodel.RPCError{Code: -32042, Message: "first", Data: json.RawMessage(`{"elicitations":[{"mode":"url","elicitationId":"e","url":"https://example.com/a","message":"go"}]}`)}
	var pages *mcp.URLElicitationError
	if got := readFailure("w", describeFailure(fmt.Errorf("calling: %w", rpc))); !errors.As(got, &pages) || pages.Elicitations[0].URL != "https://example.com/a" {
		t.Errorf("%v", got)
	}
	var plain *taskmodel.RPCError
	if got := readFailure("w", describeFailure(&taskmodel.RPCError{Code: -32000, Message: "no"})); !errors.As(got, &plain) || plain.Code != -32000 {
		t.Errorf("%v", got)
	}
	if got := readFailure("an older process wrote no detail", nil); got.Error() != "an older process wrote no detail" {
		t.Errorf("%v", got)
	}
}
