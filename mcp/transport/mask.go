package transport

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
)

// shortSecret is the length below which nothing is taken for a secret: to mask
// it would mask words.
const shortSecret = 6

// masked takes out of what a server says in a refusal the credentials that the
// request carried: careless servers quote them, and what they say is shown.
func masked(req *http.Request, own http.Header, said []byte) []byte {
	if req == nil {
		return said
	}
	var secrets []string
	add := func(s string) {
		if len(s) >= shortSecret {
			secrets = append(secrets, s)
		}
	}
	field := func(name string) {
		for _, v := range req.Header.Values(name) {
			if _, word, ok := strings.Cut(v, " "); ok {
				add(word) // after the one that says what it is
			}
			add(v)
		}
	}
	for name := range own {
		field(name)
	}
	for _, name := range []string{"Authorization", "Proxy-Authorization", "Cookie"} {
		field(name)
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
	for _, s := range secrets {
		said = bytes.ReplaceAll(said, []byte(s), []byte("(secret)"))
	}
	return said
}
