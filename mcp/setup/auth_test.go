package setup

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"mcptasks/mcp/config"
	"mcptasks/mcp/transport/signin"
)

// Which way of signing in a server's settings choose, and what is said of
// settings that do not go together.
func TestAuthorizersByGrant(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.pem")
	idp := config.IDP{Issuer: "https://idp.example", ClientID: "sso", IDTokenEnv: "MCPTASKS_TEST_NONE"}
	for _, tt := range []struct {
		name  string
		oauth config.OAuth
		kind  string // of sign-in
		fault string
	}{
		{"a person", config.OAuth{ClientID: "a"}, "person", ""},
		{"a secret", config.OAuth{ClientID: "a", ClientSecret: "hush", Grant: "client_credentials"}, "client", ""},
		{"an identity provider", config.OAuth{ClientID: "a", Grant: "enterprise", IDP: idp}, "client", ""},
		{"neither secret nor key", config.OAuth{ClientID: "a", Grant: "client_credentials"}, "", "a client_secret or a private_key"},
		{"both", config.OAuth{ClientID: "a", ClientSecret: "hush", PrivateKey: none, Grant: "client_credentials"}, "", "not both"},
		{"no such key", config.OAuth{ClientID: "a", PrivateKey: none, Grant: "client_credentials"}, "", "the private key cannot be read"},
		{"a key for a person", config.OAuth{ClientID: "a", PrivateKey: none}, "", `set oauth.grant = "client_credentials"`},
		{"a provider for a person", config.OAuth{ClientID: "a", IDP: idp}, "", `oauth.idp goes with oauth.grant = "enterprise"`},
		{"no provider", config.OAuth{ClientID: "a", Grant: "enterprise"}, "", "idp.client_id"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := config.Server{Name: "ci", Entry: config.ServerEntry{URL: "https://ci.example/mcp", OAuth: tt.oauth}}
			auth := Authorizers(t.TempDir(), slog.New(slog.DiscardHandler))
			a, err := auth(s)
			kind := ""
			switch a.(type) {
			case *signin.OAuth:
				kind = "person"
			case *signin.Credentials:
				kind = "client"
			}
			if tt.fault == "" && (err != nil || kind != tt.kind) || tt.fault != "" && (err == nil || !strings.Contains(err.Error(), tt.fault)) {
				t.Errorf("%s, %v", kind, err)
			}
			spec := Spec(s, Options{Auth: auth})
			if !strings.Contains(spec.Disabled, tt.fault) || (spec.Disabled == "") != (tt.fault == "") || strings.Contains(spec.Disabled, "hush") {
				t.Errorf("the server's row says %q", spec.Disabled)
			}
		})
	}
}
