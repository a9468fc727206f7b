package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"strings"
	"time"
)

// TLS are the settings of a server's TLS connections.
type TLS struct {
	CAFile     string // PEM, trusted beside the system's
	ClientCert string // PEM, with ClientKey
	ClientKey  string // PEM
	Insecure   bool   // do not verify the server at all
}

// Config makes a tls.Config; its errors are sentences.
func (t TLS) Config() (*tls.Config, error) {
	c := &tls.Config{InsecureSkipVerify: t.Insecure}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("the CA file cannot be read: %w", err)
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("the CA file %q holds no certificate in PEM form", t.CAFile)
		}
		c.RootCAs = pool
	}
	if (t.ClientCert == "") != (t.ClientKey == "") {
		return nil, errors.New("client_cert and client_key go together; one of them is missing")
	}
	if t.ClientCert != "" {
		cert, err := tls.LoadX509KeyPair(t.ClientCert, t.ClientKey)
		if err != nil {
			return nil, fmt.Errorf("the client certificate cannot be used: %w", err)
		}
		c.Certificates = []tls.Certificate{cert}
	}
	return c, nil
}

// ParseURL splits a server's address into the URL for requests and the path of
// the unix socket, "" when there is none. A socket is written
// unix:///run/x.sock, with the HTTP path behind a colon (unix:///run/x.sock:/mcp)
// where it is not /.
func ParseURL(raw string) (u *url.URL, socket string, err error) {
	u, err = url.Parse(raw)
	if err != nil {
		// url.Parse repeats the whole text, which may hold a token.
		return nil, "", errors.New("the server's URL cannot be read")
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		if u.Host == "" {
			return nil, "", errors.New("the server's URL names no host")
		}
		u.Fragment = ""
		return u, "", nil
	case "unix":
		socket, path, _ := strings.Cut(u.Host+u.Path, ":")
		if socket == "" {
			return nil, "", errors.New("the unix:// URL names no socket; write unix:///run/x.sock:/mcp")
		}
		if path == "" {
			path = "/"
		}
		return &url.URL{Scheme: "http", Host: "localhost", Path: path, RawQuery: u.RawQuery}, socket, nil
	}
	return nil, "", fmt.Errorf("the URL's scheme %q is not http, https or unix", u.Scheme)
}

// NewClient makes an HTTP client for one server. It has no overall timeout, for
// a task's result may take days: only dialling and the TLS handshake are
// bounded, and a connection that has died is found by keep-alives.
// It follows no redirect. Proxies come from HTTPS_PROXY, HTTP_PROXY, NO_PROXY.
func NewClient(t TLS, socket string) (*http.Client, error) {
	conf, err := t.Config()
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: 15 * time.Second, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 4}}
	tr := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        conf,
		TLSHandshakeTimeout:    15 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        90 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: 1 << 20,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
	if socket != "" {
		tr.Proxy = nil
		tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", socket)
		}
	}
	jar, err := cookiejar.New(nil) // load balancers pin sessions by cookie
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: tr, Jar: jar, CheckRedirect: noRedirect}, nil
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// netError says in words why no answer came, without the URL, which may hold a
// token.
func netError(err error, host string) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var dns *net.DNSError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &unknown):
		return fmt.Errorf("the certificate of %s is signed by an authority that is not trusted here; set ca_file: %w", host, err)
	case errors.As(err, &name):
		return fmt.Errorf("the certificate of %s is for another name: %w", host, err)
	case errors.Is(err, fs.ErrNotExist):
		// Not as an error that says so of a file: a server that starts later makes
		// its socket, so it is worth another try.
		return fmt.Errorf("%s cannot be reached, its socket is not there: %v", host, err)
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Errorf("there is no host %s: %w", host, err)
	}
	return fmt.Errorf("%s cannot be reached: %w", host, err)
}
