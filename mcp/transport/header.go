package transport

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// EncodeHeader gives a value as it stands in an Mcp-Name or Mcp-Param-* field:
// as it is where it is plain ASCII, else in the Base64 form (2026-07-28
// basic/transports/streamable-http, Value Encoding).
func EncodeHeader(v string) string {
	sentinel := strings.HasPrefix(v, "=?base64?") && strings.HasSuffix(v, "?=")
	if headerSafe(v) && !sentinel {
		return v
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(v)) + "?="
}

func headerSafe(v string) bool {
	for i := range len(v) {
		if c := v[i]; c != '\t' && (c < 0x20 || c > 0x7e) {
			return false
		}
	}
	return strings.Trim(v, " \t") == v
}

// visible says whether s may be a session id: visible ASCII alone (2025-11-25
// basic/transports, Session Management).
func visible(s string) bool {
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7e {
			return false
		}
	}
	return s != ""
}

// retryAfter reads a Retry-After field, in seconds or as a date, which is
// measured against the server's own clock where it tells the time.
func retryAfter(h http.Header, now time.Time) time.Duration {
	const most = 24 * time.Hour
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0
	}
	if f, err := strconv.ParseFloat(v, 64); err == nil {
		switch {
		case !(f > 0):
			return 0
		case f > most.Seconds():
			return most
		}
		return time.Duration(f * float64(time.Second))
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(at.Sub(now), 0), most)
}

// sameOrigin compares scheme, host and port.
func sameOrigin(a, b *url.URL) bool {
	return strings.EqualFold(a.Scheme, b.Scheme) && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if strings.EqualFold(u.Scheme, "https") {
		return "443"
	}
	return "80"
}

// backoff doubles from a second to most.
func backoff(failures int, most time.Duration) time.Duration {
	return min(time.Second<<min(max(failures-1, 0), 10), most)
}
