//go:build unix

package process

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mcptasks/mcp/demo"
	"mcptasks/mcp/proctest"
	"mcptasks/taskmodel"
)

// quietLog takes the complaints of servers about connections that tests break.
var quietLog = log.New(io.Discard, "", 0)

// demoHandler is a demo server of a generation, with some tasks.
func demoHandler(t *testing.T, g taskmodel.Generation) http.Handler {
	s := demo.New(demo.Options{Generation: g, Tasks: 4, Seed: 7})
	t.Cleanup(func() { s.Close() })
	return s.Handler()
}

// An authority signs certificates for one test.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	n    int64
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, n: 1}
	a.key = a.newKey()
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a private authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return k
}

func (a *authority) sign(host string) (certPEM, keyPEM string) {
	a.n++
	key := a.newKey()
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(a.n), Subject: pkix.Name{CommonName: host}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	if ip := net.ParseIP(host); ip != nil {
		tmpl.IPAddresses = []net.IP{ip}
	} else {
		tmpl.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	k, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return pemOf("CERTIFICATE", der), pemOf("PRIVATE KEY", k)
}

func (a *authority) pem() string { return pemOf("CERTIFICATE", a.cert.Raw) }

func pemOf(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// serve starts an HTTPS server for host, which wants a client's certificate
// where it is asked to.
func (a *authority) serve(h http.Handler, host string, clients bool) *httptest.Server {
	c, k := a.sign(host)
	pair, err := tls.X509KeyPair([]byte(c), []byte(k))
	if err != nil {
		a.t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = quietLog
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	if clients {
		s.TLS.ClientAuth, s.TLS.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		s.TLS.ClientCAs.AddCert(a.cert)
	}
	s.StartTLS()
	a.t.Cleanup(s.Close)
	return s
}

func TestPrivateAuthority(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	b := newBox(t)
	ca := b.write("ca.pem", a.pem())
	s := a.serve(demoHandler(t, taskmodel.GenCore), "127.0.0.1", false)
	url := "ci=" + s.URL + "/mcp"
	if said := b.fault(3, "unreachable", "-s", url, "tools", "ci"); !strings.Contains(said, "ca_file") {
		t.Errorf("nothing says what to do: %s", said)
	}
	b.want(0, "-s", url, "--set", "ci.ca_file="+ca, "tools", "ci")
	// In the file, and for that server alone.
	b.write(".config/mcptasks/config.toml", "[servers.ci]\nurl = '"+s.URL+"/mcp'\nca_file = '"+ca+"'\n[servers.other]\nurl = '"+s.URL+"/mcp/'\n")
	b.want(0, "tools", "ci")
	b.want(3, "tools", "other")
	if said := b.fault(2, "config", "-s", url, "--set", "ci.ca_file="+filepath.Join(b.home, "none.pem"), "tools", "ci"); !strings.Contains(said, "CA file") {
		t.Error(said)
	}
}

func TestClientCertificate(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	b := newBox(t)
	cert, key := a.sign("a client")
	b.write("c.pem", cert)
	b.write("k.pem", key)
	s := a.serve(demoHandler(t, taskmodel.GenExtension), "127.0.0.1", true)
	with := []string{"-s", "ci=" + s.URL + "/mcp", "--set", "ci.ca_file=" + b.write("ca.pem", a.pem())}
	b.fault(3, "unreachable", append(with, "tools", "ci")...)
	b.want(0, append(with, "--set", "ci.client_cert="+filepath.Join(b.home, "c.pem"), "--set", "ci.client_key="+filepath.Join(b.home, "k.pem"), "tools", "ci")...)
	if said := b.fault(2, "config", append(with, "--set", "ci.client_cert="+filepath.Join(b.home, "c.pem"), "tools", "ci")...); !strings.Contains(said, "client_key") {
		t.Error(said)
	}
}

// insecure is an explicit setting, and its warning stands wherever the server
// is used.
func TestInsecureWarnsEachTime(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	b := newBox(t)
	s := a.serve(demoHandler(t, taskmodel.GenCore), "elsewhere.example", false)
	with := []string{"-s", "ci=" + s.URL + "/mcp", "--set", "ci.insecure=true"}
	for _, args := range [][]string{{"servers"}, {"ls"}, {"tools", "ci"}, {"tools", "ci", "-o", "json"}} {
		if r := b.want(0, append(with, args...)...); !strings.Contains(r.err, "ci: the server's certificate is not checked") {
			t.Errorf("%q says nothing: %s", args, r.err)
		}
	}
	var rows []struct{ Name, Warning string }
	b.read(0, &rows, append(with, "servers")...)
	if len(rows) != 1 || !strings.Contains(rows[0].Warning, "not checked") {
		t.Errorf("%+v", rows)
	}
	b.want(3, "-s", "ci="+s.URL+"/mcp", "tools", "ci")
}

// A relay is a proxy that connects every name to one server and notes which
// were asked for.
type relay struct {
	mu    sync.Mutex
	asked []string
	to    string
}

func (p *relay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, r.Method+" "+r.Host)
	p.mu.Unlock()
	if r.Method != http.MethodConnect { // a plain request with a whole URL
		r.URL.Host, r.RequestURI = p.to, ""
		r.URL.Scheme = "http"
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer res.Body.Close()
		for k, v := range res.Header {
			w.Header()[k] = v
		}
		w.WriteHeader(res.StatusCode)
		_, _ = io.Copy(w, res.Body)
		return
	}
	up, err := net.Dial("tcp", p.to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.WriteHeader(http.StatusOK)
	down, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		up.Close()
		return
	}
	go func() { _, _ = io.Copy(up, buf); up.Close() }()
	go func() { _, _ = io.Copy(down, up); down.Close() }()
}

func (p *relay) names() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.asked, ", ")
}

// The names end in .invalid, which no resolver knows (RFC 6761 section 6.4):
// what is reached is reached by the proxy.
func TestProxies(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	secure := a.serve(demoHandler(t, taskmodel.GenCore), "ci.invalid", false)
	plain := httptest.NewServer(demoHandler(t, taskmodel.GenCore))
	t.Cleanup(plain.Close)
	for _, tt := range []struct {
		name, url, to, variable, no, asked string
		code                               int
	}{
		{"HTTPS_PROXY", "https://ci.invalid/mcp", secure.Listener.Addr().String(), "HTTPS_PROXY", "", "CONNECT ci.invalid:443", 0},
		{"https_proxy", "https://ci.invalid:8443/mcp", secure.Listener.Addr().String(), "https_proxy", "other.invalid", "CONNECT ci.invalid:8443", 0},
		{"HTTP_PROXY", "http://ci.invalid/mcp", plain.Listener.Addr().String(), "HTTP_PROXY", "", "POST ci.invalid", 0},
		{"NO_PROXY", "https://ci.invalid/mcp", secure.Listener.Addr().String(), "HTTPS_PROXY", "ci.invalid", "", 3},
		{"NO_PROXY of a domain", "http://ci.invalid/mcp", plain.Listener.Addr().String(), "HTTP_PROXY", ".invalid", "", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			p := &relay{to: tt.to}
			s := httptest.NewServer(p)
			t.Cleanup(s.Close)
			b.env[tt.variable], b.env["NO_PROXY"] = s.URL, tt.no
			b.want(tt.code, "-s", "ci="+tt.url, "--set", "ci.ca_file="+b.write("ca.pem", a.pem()), "tools", "ci")
			if got := p.names(); !strings.HasPrefix(got, tt.asked) || tt.asked == "" && got != "" {
				t.Errorf("the proxy was asked for %q, want %q", got, tt.asked)
			}
		})
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	dir, err := os.MkdirTemp("", "s") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "x.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: demoHandler(t, taskmodel.GenCore), ReadHeaderTimeout: proctest.Patience}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
	b.env["HTTP_PROXY"] = "http://127.0.0.1:1" // no proxy is asked for a socket
	b.want(0, "-s", "ci=unix://"+socket+":/mcp", "start", "ci", "build", "target=api", "--timeout", "60s")
	var rows []struct{ Name, Target, Transport, State string }
	b.read(0, &rows, "-s", "ci=unix://"+socket+":/mcp", "servers")
	if len(rows) != 1 || rows[0].State != "ready" || rows[0].Transport != "http" {
		t.Errorf("%+v", rows)
	}
	b.fault(3, "unreachable", "-s", "ci=unix://"+socket+".not:/mcp", "tools", "ci")
}

// deep is a server without tasks whose one tool has a schema of that depth.
func deep(t *testing.T, levels int) string {
	t.Helper()
	schema := strings.Repeat(`{"properties":`, levels) + "{}" + strings.Repeat("}", levels)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		out := ""
		switch m.Method {
		case "initialize":
			out = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"deep","version":"1"}}`
		case "tools/list":
			out = `{"tools":[{"name":"x","inputSchema":` + schema + `}]}`
		case "server/discover":
			w.WriteHeader(http.StatusBadRequest)
			return
		default:
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":`+out+`}`)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/mcp"
}

// limits.depth and transport = "http" of the file do what they say.
func TestLimitsOfTheFile(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	url := deep(t, 60)
	file := func(depth string) string {
		return b.write("d"+depth+".toml", "[servers.ci]\nurl = '"+url+"'\n[limits]\ndepth = "+depth+"\n")
	}
	b.want(0, "-c", file("100"), "tools", "ci")
	if r := b.run("-c", file("20"), "tools", "ci", "--timeout", "5s"); r.code == 0 {
		t.Errorf("60 levels pass where 20 are allowed: %s%s", r.out, r.err)
	}
	legacy := httptest.NewServer(demoHandler(t, taskmodel.GenCore)) // HTTP+SSE at /sse
	t.Cleanup(legacy.Close)
	b.want(0, "-s", "ci="+legacy.URL+"/sse", "tools", "ci")
	b.want(0, "-s", "ci="+legacy.URL+"/sse", "--set", "ci.transport=sse", "tools", "ci")
	b.want(3, "-s", "ci="+legacy.URL+"/sse", "--set", "ci.transport=http", "tools", "ci")
	b.fault(2, "config", "-s", "ci="+legacy.URL+"/sse", "--set", "ci.transport=stdio", "tools", "ci")
}
