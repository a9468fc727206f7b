package transport

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcptasks/mcp/jsonrpc"
)

// echoServer answers each request with the path and the client's certificate.
func echoServer() http.Handler {
	return &script{do: func(_ *script, w http.ResponseWriter, r *http.Request, m jsonrpc.Message) {
		who := r.URL.Path
		if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
			who += " " + r.TLS.PeerCertificates[0].Subject.CommonName
		}
		result(w, m, `"`+who+`"`)
	}}
}

// callOnce dials for real, makes one call and closes.
func callOnce(t *testing.T, h HTTP) (string, error) {
	t.Helper()
	conn, err := h.Dial(t.Context(), "modern")
	if err != nil {
		return "", err
	}
	p := jsonrpc.NewPeer(conn, newPeerHandler(), jsonrpc.PeerOptions{})
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b, err := p.Call(ctxFor(t), jsonrpc.Call{Method: "x"})
	if cerr := p.Close(ctxFor(t)); cerr != nil {
		t.Error(cerr)
	}
	return string(b), err
}

// clientPair writes a self-signed client certificate and its key.
func clientPair(t *testing.T) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "me"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	kder, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return writePEM(t, "CERTIFICATE", der), writePEM(t, "PRIVATE KEY", kder)
}

func writePEM(t *testing.T, kind string, der []byte) string {
	t.Helper()
	f := filepath.Join(t.TempDir(), "x.pem")
	if err := os.WriteFile(f, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestTLS(t *testing.T) {
	srv := httptest.NewUnstartedServer(echoServer())
	srv.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	srv.Config.ErrorLog = nil
	srv.StartTLS()
	defer srv.Close()
	ca := writePEM(t, "CERTIFICATE", srv.Certificate().Raw)
	cert, key := clientPair(t)
	empty := filepath.Join(t.TempDir(), "empty")
	os.WriteFile(empty, nil, 0o600)
	url := srv.URL + "/mcp"
	other := strings.Replace(url, "127.0.0.1", "localhost", 1)
	for _, tc := range []struct {
		name, url string
		tls       TLS
		want, err string
	}{
		{"unknown authority", url, TLS{}, "", "set ca_file"},
		{"own CA", url, TLS{CAFile: ca}, `"/mcp"`, ""},
		{"another name", other, TLS{CAFile: ca}, "", "for another name"},
		{"insecure", other, TLS{Insecure: true}, `"/mcp"`, ""},
		{"client certificate", url, TLS{CAFile: ca, ClientCert: cert, ClientKey: key}, `"/mcp me"`, ""},
		{"no key", url, TLS{ClientCert: cert}, "", "go together"},
		{"wrong key", url, TLS{ClientCert: cert, ClientKey: cert}, "", "cannot be used"},
		{"no CA file", url, TLS{CAFile: "/none"}, "", "cannot be read"},
		{"no PEM", url, TLS{CAFile: empty}, "", "no certificate"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := callOnce(t, HTTP{URL: tc.url, TLS: tc.tls})
			if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}

func TestUnixSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "u") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	sock := filepath.Join(dir, "s.sock")
	l, err := net.Listen("unix", sock)
	if err != nil {
		t.Skip("no unix sockets here:", err)
	}
	srv := &http.Server{Handler: echoServer()}
	go srv.Serve(l)
	defer srv.Close()
	for url, want := range map[string]string{"unix://" + sock: `"/"`, "unix://" + sock + ":/mcp": `"/mcp"`} {
		if got, err := callOnce(t, HTTP{URL: url}); err != nil || got != want {
			t.Errorf("%s: %s, %v", url, got, err)
		}
	}
	if _, err := callOnce(t, HTTP{URL: "unix://" + sock + ".none:/mcp"}); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("err = %v", err)
	}
}

func TestParseURL(t *testing.T) {
	for _, tc := range []struct{ in, url, socket, err string }{
		{"https://a.example/mcp?x=1#f", "https://a.example/mcp?x=1", "", ""},
		{"HTTP://a:81", "http://a:81", "", ""},
		{"unix:///run/x.sock:/mcp?x=1", "http://localhost/mcp?x=1", "/run/x.sock", ""},
		{"unix:///run/x.sock", "http://localhost/", "/run/x.sock", ""},
		{"unix://", "", "", "names no socket"},
		{"https:///mcp", "", "", "no host"},
		{"ftp://a/", "", "", `"ftp"`},
		{"a b", "", "", `scheme ""`},
		{"http://a:secret@b:x/", "", "", "cannot be read"},
	} {
		u, socket, err := ParseURL(tc.in)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: err = %v", tc.in, err)
			}
			continue
		}
		if err != nil || u.String() != tc.url || socket != tc.socket {
			t.Errorf("%s: %v %q %v", tc.in, u, socket, err)
		}
	}
	if _, err := (&HTTP{URL: "http://a"}).Dial(t.Context(), "other"); err == nil {
		t.Error("an unknown era was taken")
	}
}

func TestSameOrigin(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"https://a/x", "https://A:443/y", true}, {"http://a", "http://a:80", true}, {"http://a", "https://a", false},
		{"http://a", "http://a:81", false}, {"http://a", "http://a.b", false}, {"http://[::1]:8/", "http://[::1]:8", true},
	} {
		a, _, _ := ParseURL(tc.a)
		b, _, _ := ParseURL(tc.b)
		if sameOrigin(a, b) != tc.want {
			t.Errorf("%s %s", tc.a, tc.b)
		}
	}
}
