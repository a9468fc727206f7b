package signin

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcptasks/mcp/transport"
)

// keyFile writes a PEM file with a block, and gives its name.
func keyFile(t *testing.T, kind string, der []byte, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func pkcs8(t *testing.T, key any, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return keyFile(t, "PRIVATE KEY", der, err)
}

// ext-auth, oauth-client-credentials, Client Authentication Methods: JWT
// authentication, by RFC 7523 sections 2.2 and 3.
func TestClientCredentialsByAssertion(t *testing.T) {
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	long, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sec1, sec1Err := x509.MarshalECPrivateKey(p256)
	for _, tt := range []struct {
		name, file string
		public     crypto.PublicKey
		kid        string
		methods    []string
		algs       []string
		alg, fault string // what is signed with, or said
	}{
		{"an EC key", pkcs8(t, p256, nil), p256.Public(), "k1", []string{"private_key_jwt"}, []string{"RS256", "ES256"}, "ES256", ""},
		{"an EC key as openssl writes it", keyFile(t, "EC PRIVATE KEY", sec1, sec1Err), p256.Public(), "", []string{"private_key_jwt"}, nil, "ES256", ""},
		{"a longer EC key", pkcs8(t, p384, nil), p384.Public(), "", []string{"private_key_jwt"}, nil, "ES384", ""},
		{"an RSA key", pkcs8(t, long, nil), long.Public(), "", nil, nil, "RS256", ""},
		{"an RSA key as openssl writes it, for PSS", keyFile(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(long), nil), long.Public(), "",
			[]string{"client_secret_basic", "private_key_jwt"}, []string{"PS256", "ES256"}, "PS256", ""},
		{"an Edwards key", pkcs8(t, edwards, nil), public, "", []string{"private_key_jwt"}, []string{"EdDSA"}, "EdDSA", ""},
		{"another's key", pkcs8(t, p256, nil), p384.Public(), "", []string{"private_key_jwt"}, nil, "", "refused the client credentials (400 invalid_client)"},
		{"a signature that is not taken", pkcs8(t, p256, nil), p256.Public(), "", []string{"private_key_jwt"}, []string{"RS256"}, "", "no way that the authorization server takes (RS256)"},
		{"assertions that are not taken", pkcs8(t, p256, nil), p256.Public(), "", []string{"client_secret_basic"}, nil, "", "takes no signed assertions (private_key_jwt), only client_secret_basic"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.methods, w.algs, w.keys["bot"] = tt.methods, tt.algs, tt.public
			c, err := ClientCredentials(Config{Server: "ci", URL: w.rs.URL + "/mcp", ClientID: "bot", PrivateKey: tt.file, KeyID: tt.kid, Now: w.clock})
			if err != nil {
				t.Fatal(err)
			}
			defer c.o.conf.Client.CloseIdleConnections()
			got, err := w.call(c)
			if tt.fault != "" {
				if !errors.Is(err, transport.ErrSignIn) || !strings.Contains(err.Error(), tt.fault) {
					t.Errorf("%q, %v", got, err)
				}
				return
			}
			if err != nil || got != `{"scopes":["read"]}` {
				t.Fatal(got, err)
			}
			w.pass(2 * time.Hour) // an assertion is made anew for each request
			w.expire()
			if _, err := w.call(c); err != nil {
				t.Error(err)
			}
			if len(w.headers) != 2 || w.headers[1]["alg"] != tt.alg {
				t.Errorf("signed with %v, want %s", w.headers, tt.alg)
			}
			if kid, _ := w.headers[0]["kid"].(string); kid != tt.kid {
				t.Errorf("key %q, want %q", kid, tt.kid)
			}
		})
	}
}

func TestKeysThatCannotBeUsed(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0")
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	good, goodErr := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	text := func(s string) string {
		path := filepath.Join(t.TempDir(), "key.pem")
		if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, tt := range map[string]struct{ file, secret, want string }{
		"no file":          {filepath.Join(t.TempDir(), "none.pem"), "", "cannot be read"},
		"no PEM":           {text("hush"), "", "holds no private key"},
		"a certificate":    {keyFile(t, "CERTIFICATE", []byte("hush"), nil), "", "holds no private key"},
		"damaged":          {keyFile(t, "PRIVATE KEY", []byte("hush"), nil), "", "cannot be read"},
		"encrypted":        {keyFile(t, "ENCRYPTED PRIVATE KEY", []byte("hush"), nil), "", "is encrypted"},
		"too short":        {pkcs8(t, short, err), "", "1024 bits"},
		"the key itself":   {"-----BEGIN PRIVATE KEY-----\nhush\n-----END PRIVATE KEY-----", "", "the name of a file"},
		"a secret as well": {pkcs8(t, good, goodErr), "hush", "not both"},
	} {
		_, err := ClientCredentials(Config{URL: "http://x", ClientID: "a", PrivateKey: tt.file, ClientSecret: tt.secret})
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A key that is renewed in its place is taken; one that is gone is told.
func TestKeyIsReadEachTime(t *testing.T) {
	w := newWorld(t)
	w.methods = []string{"private_key_jwt"}
	one, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	path := pkcs8(t, one, err)
	w.keys["bot"] = one.Public()
	c, err := ClientCredentials(Config{Server: "ci", URL: w.rs.URL + "/mcp", ClientID: "bot", PrivateKey: path, Now: w.clock})
	if err != nil {
		t.Fatal(err)
	}
	defer c.o.conf.Client.CloseIdleConnections()
	if _, err := w.call(c); err != nil {
		t.Fatal(err)
	}
	two, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	b, readErr := os.ReadFile(pkcs8(t, two, err))
	if err := errors.Join(readErr, os.WriteFile(path, b, 0o600)); err != nil {
		t.Fatal(err)
	}
	w.set(func() { w.keys["bot"] = two.Public() })
	w.pass(2 * time.Hour)
	w.expire()
	if _, err := w.call(c); err != nil {
		t.Error(err)
	}
	os.Remove(path)
	w.pass(2 * time.Hour)
	w.expire()
	if _, err := w.call(c); err == nil || !strings.Contains(err.Error(), "the private key cannot be read") {
		t.Error(err)
	}
}
