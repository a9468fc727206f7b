package transport

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// shortSecret is the length below which nothing is taken for a secret: to mask
// it would mask words.
const shortSecret = 6

// secretHeader is a header whose value is a secret by its name. Those of other
// names say who one is or which team, and are words that a refusal may use.
var secretHeader = regexp.MustCompile(`(?i)(token|secret|passw(or)?d|api[-_]?key|credential|authorization|bearer|cookie|^x-auth)`)

// secrets are what a request carried that is not to be shown: its credentials,
// and those of the configuration.
func (c *httpConn) secrets(req *http.Request) []string {
	var secrets []string
	add := func(s string) {
		if len(s) >= shortSecret {
			secrets = append(secrets, s)
		}
	}
	for _, s := range c.conf.Secrets {
		add(s)
	}
	if req == nil {
		return secrets
	}
	for name, values := range req.Header {
		if !secretHeader.MatchString(name) {
			continue
		}
		for _, v := range values {
			if _, word, ok := strings.Cut(v, " "); ok {
				add(word) // after the one that says what it is
			}
			add(v)
		}
	}
	if req.URL != nil {
		if p, ok := req.URL.User.Password(); ok {
			add(p)
			add(url.QueryEscape(p))
		}
		for _, vs := range req.URL.Query() {
			for _, v := range vs {
				add(v)
				add(url.QueryEscape(v))
			}
		}
	}
	return secrets
}

// masked takes secrets out of what a server says in a refusal: careless servers
// quote them, and what they say is shown. Where it is JSON they may be written
// with escapes.
func masked(secrets []string, said []byte) []byte {
	for _, s := range secrets {
		said = bytes.ReplaceAll(said, []byte(s), []byte("(secret)"))
	}
	if len(secrets) == 0 || bytes.IndexByte(said, '\\') < 0 {
		return said
	}
	out := said[:0:0]
	for len(said) > 0 {
		i := bytes.IndexByte(said, '"')
		end := i
		if i >= 0 {
			end = endOfString(said, i+1)
		}
		if end < 0 || i < 0 {
			break
		}
		out = append(out, said[:i]...)
		out = append(out, maskedString(secrets, said[i:end])...)
		said = said[end:]
	}
	return append(out, said...)
}

// endOfString is where the JSON string ends whose text begins at i, behind its
// quote; -1 when it does not.
func endOfString(b []byte, i int) int {
	for ; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// maskedString is a JSON string without the secrets in its text.
func maskedString(secrets []string, quoted []byte) []byte {
	var text string
	if bytes.IndexByte(quoted, '\\') < 0 || json.Unmarshal(quoted, &text) != nil {
		return quoted
	}
	plain := text
	for _, s := range secrets {
		text = strings.ReplaceAll(text, s, "(secret)")
	}
	if text == plain {
		return quoted
	}
	b, err := json.Marshal(text)
	if err != nil {
		return quoted
	}
	return b
}
