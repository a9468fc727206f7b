package safe

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// A Verdict is what there is to know of a URL that a server gave before a
// person opens it. All text in it is fit for the screen.
type Verdict struct {
	OK       bool     // may be opened when the person consents; http and https only
	Why      string   // not OK: why, as a sentence
	Scheme   string   // in lower case
	Host     string   // with port, as it will be asked for: punycode where the name is not ASCII
	Full     string   // the whole URL, everything that does not print escaped
	Open     string   // what to hand to the browser, as one argument and never through a shell; "" when not OK
	Warnings []string // sentences, the gravest first
}

// JudgeURL judges a raw URL. It never reaches out.
func JudgeURL(raw string) Verdict {
	v := Verdict{Full: Escape(raw)}
	refuse := func(format string, args ...any) Verdict {
		v.OK, v.Open, v.Why = false, "", fmt.Sprintf(format, args...)
		return v
	}
	if scheme, _, ok := strings.Cut(raw, ":"); ok {
		v.Scheme = Escape(strings.ToLower(scheme))
	}
	switch {
	case raw == "":
		return refuse("The URL is empty.")
	case !utf8.ValidString(raw):
		return refuse("The URL is not valid UTF-8.")
	case len(raw) > 16<<10:
		return refuse("The URL is longer than 16 KiB.")
	}
	for _, r := range raw {
		if unicode.IsControl(r) {
			return refuse("The URL holds control characters.")
		}
	}
	if strings.ContainsRune(raw, '\\') {
		return refuse("The URL holds a backslash, which browsers and programs read differently.")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return refuse("This is not a URL.")
	}
	v.Scheme = Escape(u.Scheme)
	v.Host = Escape(u.Host)
	if u.Scheme != "http" && u.Scheme != "https" {
		if u.Scheme == "" {
			return refuse("The URL has no scheme; only http and https are opened.")
		}
		return refuse("Its scheme is %s; only http and https are opened.", Escape(u.Scheme))
	}
	if u.Hostname() == "" {
		return refuse("The URL names no host.")
	}
	authority := strings.TrimPrefix(raw[len(u.Scheme)+1:], "//")
	if i := strings.IndexAny(authority, "/?#"); i >= 0 {
		authority = authority[:i]
	}
	if strings.ContainsAny(authority, " \"'<>^`{|}%") || strings.ContainsFunc(authority, func(r rune) bool { return invisible(r) || unicode.IsSpace(r) }) {
		return refuse("Its host holds characters that no host name has.")
	}
	host := u.Hostname()
	ascii := host
	if _, err := netip.ParseAddr(strings.SplitN(host, "%", 2)[0]); err != nil {
		if ascii, err = idna.Lookup.ToASCII(host); err != nil {
			if !isASCII(host) {
				return refuse("Its host is not a valid international name.")
			}
			ascii = strings.ToLower(host) // an underscore and the like: odd, but such hosts exist
		}
	}
	shown := ascii
	if strings.Contains(shown, ":") {
		shown = "[" + shown + "]"
	}
	port := u.Port()
	u.Host = shown
	if port != "" {
		u.Host += ":" + port
	}
	v.Host = Escape(u.Host)

	if u.User != nil {
		v.warn("It carries a user name before the host: the host is %s, not what stands before the @.", v.Host)
	}
	if strings.Contains(ascii, "xn--") {
		uni, err := idna.Punycode.ToUnicode(ascii)
		if err != nil || uni == ascii {
			uni = host
		}
		v.warn("Its host has letters outside ASCII, which can look like others: %s is %s.", v.Host, Escape(uni))
	}
	switch a, err := netip.ParseAddr(ascii); {
	case err == nil && a.IsLoopback(), ascii == "localhost", strings.HasSuffix(ascii, ".localhost"):
		v.warn("It points to this machine.")
	case err == nil && (a.IsPrivate() || a.IsLinkLocalUnicast()):
		v.warn("It points into a private network by a bare address.")
	case err == nil:
		v.warn("Its host is a bare address, not a name.")
	case numericHost(ascii):
		v.warn("Its host is a number, which browsers read as an address.")
	}
	if port != "" && !(u.Scheme == "http" && port == "80") && !(u.Scheme == "https" && port == "443") {
		v.warn("Its port is %s, not the usual one.", Escape(port))
	}
	if strings.ContainsFunc(raw, invisible) {
		v.warn("It holds characters that do not show; they are escaped above.")
	}
	if strings.ContainsFunc(raw, func(r rune) bool { return r > 0x7f && !invisible(r) }) && isASCII(host) {
		v.warn("It holds letters outside ASCII; they are sent percent-encoded.")
	}
	if strings.ContainsAny(raw, "`$;|<>\"' ") {
		v.warn("It holds characters that mean something to a shell; it is never passed through one.")
	}
	if u.Scheme == "http" {
		v.warn("It is not encrypted (http).")
	}
	v.OK = true
	v.Open = encode(u.String())
	return v
}

func (v *Verdict) warn(format string, args ...any) {
	v.Warnings = append(v.Warnings, fmt.Sprintf(format, args...))
}

// encode leaves only what a URL may hold, so that it is one word to anybody.
func encode(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c <= 0x20 || c >= 0x7f || strings.IndexByte("\"'<>\\^`{|}$", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > 0x7f }) < 0
}

// numericHost reports a host that is a number to a browser: 2130706433, 0x7f.1.
func numericHost(h string) bool {
	last := h[strings.LastIndexByte(h, '.')+1:]
	if last == "" {
		return false
	}
	if strings.HasPrefix(last, "0x") {
		return true
	}
	return strings.IndexFunc(last, func(r rune) bool { return r < '0' || r > '9' }) < 0
}

// Escape gives s as one line in which everything that does not print is
// written out: \n, \x1b, \u{202e}, and bytes that are no UTF-8 as \xff. Nothing
// is removed, so it is for text whose exact characters matter: URLs, file
// names, the head of a reply that is no JSON.
func Escape(s string) string {
	var b strings.Builder
	last := rune(0)
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n <= 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r >= 0x80 && (!unicode.IsPrint(r) && !unicode.Is(unicode.Co, r) || invisible(r)):
			fmt.Fprintf(&b, `\u{%x}`, r)
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Mc) && last == 0:
			b.WriteRune('◌')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
		last = r
		i += n
	}
	return b.String()
}
