package setup

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"

	"mcptasks/mcp/config"
	"mcptasks/mcp/transport"
)

func Authorizers(dir string, log *slog.Logger) func(s config.Server, client *http.Client) transport.Authorizer {
	return nil
}

type LoginOptions struct {
	State     string
	Log       *slog.Logger
	Out       io.Writer
	In        io.Reader
	NoBrowser bool
}

func Login(ctx context.Context, s config.Server, o LoginOptions) error { return errors.New("not yet") }
func Logout(ctx context.Context, s config.Server, dir string) error   { return errors.New("not yet") }
