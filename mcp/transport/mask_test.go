package transport

import (
	"net/http"
	"testing"
)

func TestCredentialsInARefusalAreMasked(t *testing.T) {
	req, err := http.NewRequest(http.MethodPost, "https://me:p%40ssword@ci.example/mcp?key=abc%2Bdef&v=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer tok-123456")
	req.Header.Set("X-Team", "the red one")
	req.Header.Set("Accept", "application/json")
	own := http.Header{"X-Team": nil}
	for said, want := range map[string]string{
		"no: tok-123456":                          "no: (secret)",
		"Authorization: [Bearer tok-123456]":      "Authorization: [Bearer (secret)]",
		"team the red one":                        "team the (secret)",
		"/mcp?key=abc%2Bdef&v=1, that is abc+def": "/mcp?key=(secret)&v=1, that is (secret)",
		"password p@ssword or p%40ssword":         "password (secret) or (secret)",
		"takes application/json, v=1":             "takes application/json, v=1",
	} {
		if got := string(masked(req, own, []byte(said))); got != want {
			t.Errorf("%q became %q, want %q", said, got, want)
		}
	}
	if got := string(masked(nil, nil, []byte("as it is"))); got != "as it is" {
		t.Errorf("%q", got)
	}
}
