package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"mcptasks/mcp/config"
	"mcptasks/mcp/transport"
	"mcptasks/mcp/transport/signin"
)

// Authorizers makes the sign-in of each HTTP server: a token from the
// environment or a command where one is configured, the client's own
// credentials, an identity provider's grant, or else what a person's `mcptasks login` brought. A server whose
// headers carry an Authorization signs itself. dir is the state folder.
func Authorizers(dir string, log *slog.Logger) func(config.Server) (transport.Authorizer, error) {
	store := signin.OpenStore(filepath.Join(dir, "tokens"), log)
	return func(s config.Server) (transport.Authorizer, error) {
		e := s.Entry
		switch {
		case header(e.Headers).Get("Authorization") != "":
			return nil, nil
		case e.TokenEnv != "":
			return signin.Env(s.Name, e.TokenEnv), nil
		case len(e.TokenCommand) > 0:
			return signin.Command(s.Name, e.TokenCommand), nil
		}
		if _, socket, err := transport.ParseURL(e.URL); err != nil || socket != "" {
			return nil, err
		}
		conf, err := signinConfig(s, store, log)
		if err != nil {
			return nil, err
		}
		switch o := e.OAuth; o.Grant {
		case "client_credentials":
			return signin.ClientCredentials(conf)
		case "enterprise":
			return signin.Enterprise(conf, signin.Provider{Issuer: o.IDP.Issuer, ClientID: o.IDP.ClientID, ClientSecret: o.IDP.ClientSecret,
				IDTokenEnv: o.IDP.IDTokenEnv, IDTokenCommand: o.IDP.IDTokenCommand})
		default:
			if o.PrivateKey != "" {
				return nil, errors.New("oauth.private_key does not go with the sign-in of a person; set oauth.grant = \"client_credentials\" (or \"enterprise\")")
			}
			if o.IDP.Issuer != "" {
				return nil, errors.New("oauth.idp goes with oauth.grant = \"enterprise\"")
			}
		}
		return signin.New(conf)
	}
}

func signinConfig(s config.Server, store signin.Store, log *slog.Logger) (signin.Config, error) {
	c, err := signin.NewClient(tlsOf(s.Entry))
	if err != nil {
		return signin.Config{}, err
	}
	o := s.Entry.OAuth
	return signin.Config{Server: s.Name, URL: s.Entry.URL, ClientID: o.ClientID, ClientSecret: o.ClientSecret,
		PrivateKey: o.PrivateKey, KeyID: o.KeyID, Scopes: o.Scopes,
		Store: store, Client: c, Log: log}, nil
}

func tlsOf(e config.ServerEntry) transport.TLS {
	return transport.TLS{CAFile: e.CAFile, ClientCert: e.ClientCert, ClientKey: e.ClientKey, Insecure: e.Insecure}
}

// LoginOptions are the process that a person signs in at.
type LoginOptions struct {
	State     string // the state folder
	Log       *slog.Logger
	Out       io.Writer // where the address is shown
	In        io.Reader // where the address at the end can be pasted; nil: nowhere
	NoBrowser bool
}

// Login signs a person in to one server.
func Login(ctx context.Context, s config.Server, o LoginOptions) error {
	a, err := oauth(s, o.State, o.Log)
	if err != nil {
		return err
	}
	return a.Login(ctx, signin.Terminal(o.Out, o.In, !o.NoBrowser))
}

// screenLogin is how long a sign-in begun on the screens waits for the person.
const screenLogin = 10 * time.Minute

// SignIn signs a person in from the screens, which show no address: open, nil
// for the system's browser, must succeed, else the error says which command
// does it without one.
func SignIn(ctx context.Context, s config.Server, o LoginOptions, open func(page string) error) error {
	a, err := oauth(s, o.State, o.Log)
	if err != nil {
		return err
	}
	if open == nil {
		open = openHere
	}
	ctx, cancel := context.WithTimeoutCause(ctx, screenLogin, fmt.Errorf("nobody signed in to %s within %s", s.Name, screenLogin))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	err = a.Login(ctx, signin.Person{Open: func(page string) error {
		err := open(page)
		if err != nil {
			stop(fmt.Errorf("no browser can be opened here (%w): mcptasks login %s --no-browser shows the address", err, s.Name))
		}
		return err
	}})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// openHere opens the system's browser where there is a screen for one. Without,
// the program that opens it starts and fails where nobody sees it.
func openHere(page string) error {
	if runtime.GOOS != "windows" && runtime.GOOS != "darwin" && os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return errors.New("there is no display")
	}
	return signin.OpenBrowser(page)
}

// Logout forgets what a sign-in brought, and the inputs that were asked for.
func Logout(ctx context.Context, s config.Server, dir string) error {
	if forgetInputs(s, signin.Keyring{}) && s.Stdio() {
		return nil
	}
	a, err := oauth(s, dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return a.Logout(ctx)
}

func oauth(s config.Server, dir string, log *slog.Logger) (*signin.OAuth, error) {
	if s.Stdio() {
		return nil, fmt.Errorf("%s is a command; there is nothing to sign in to", s.Name)
	}
	a, err := Authorizers(dir, log)(s)
	if err != nil {
		return nil, err
	}
	o, ok := a.(*signin.OAuth)
	if !ok {
		return nil, fmt.Errorf("%s signs in by what its configuration says (a token or credentials); there is no one to ask", s.Name)
	}
	return o, nil
}
