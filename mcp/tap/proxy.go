package tap

import (
	"context"
	"errors"
)

// HTTP is to come.
func HTTP(ctx context.Context, o Options) error { return errors.New("not yet") }
