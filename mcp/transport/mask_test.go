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
	req.Header.Set("Authorization", "Bearer tok/123456")
	req.Header.Set("X-Team", "platform")
	req.Header.Set("X-Api-Key", "k-\"quoted\"")
	req.Header.Set("Accept", "application/json")
	c := &httpConn{conf: HTTP{Secrets: []string{"from-a-variable", "short"}}}
	for said, want := range map[string]string{
		"no: tok/123456":                          "no: (secret)",
		"Authorization: [Bearer tok/123456]":      "Authorization: [Bearer (secret)]",
		"not for the team platform":               "not for the team platform",
		"X-Env: from-a-variable, which is short":  "X-Env: (secret), which is short",
		"/mcp?key=abc%2Bdef&v=1, that is abc+def": "/mcp?key=(secret)&v=1, that is (secret)",
		"password p@ssword or p%40ssword":         "password (secret) or (secret)",
		"takes application/json, v=1":             "takes application/json, v=1",
		`{"message":"no: tok\/123456","n":1}`:     `{"message":"no: (secret)","n":1}`,
		`{"message":"no: \u0074ok/123456\n"}`:     `{"message":"no: (secret)\n"}`,
		`{"k-\"quoted\"":"\\ as it is \/"}`:       `{"(secret)":"\\ as it is \/"}`,
		`broken "no: tok\/123456`:                 `broken "no: tok\/123456`,
		`a \ and no JSON`:                         `a \ and no JSON`,
	} {
		if got := string(masked(c.secrets(req), []byte(said))); got != want {
			t.Errorf("%q became %q, want %q", said, got, want)
		}
	}
	if got := string(masked((&httpConn{}).secrets(nil), []byte("as it is"))); got != "as it is" {
		t.Errorf("%q", got)
	}
}
