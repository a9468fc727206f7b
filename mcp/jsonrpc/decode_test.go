package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// JSON-RPC 2.0 sections 4 and 5; MCP 2025-11-25 basic, Messages.
func TestDecode(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     Message // raw members and kind
		err      error
	}{
		{"request", `{"jsonrpc":"2.0","id":1,"method":"a/b","params":{"x":[1,2]}}`,
			Message{Kind: KindRequest, Version: "2.0", ID: "1", Method: "a/b", Params: json.RawMessage(`{"x":[1,2]}`)}, nil},
		{"string id keeps its quotes", `{"jsonrpc":"2.0","id":"1","method":"m"}`, Message{Kind: KindRequest, Version: "2.0", ID: `"1"`, Method: "m"}, nil},
		{"1.0 is not 1", `{"jsonrpc":"2.0","id":1.0,"method":"m"}`, Message{Kind: KindRequest, Version: "2.0", ID: "1.0", Method: "m"}, nil},
		{"escaped id stays escaped", `{"jsonrpc":"2.0","id":"\u0041","method":"m"}`, Message{Kind: KindRequest, Version: "2.0", ID: `"\u0041"`, Method: "m"}, nil},
		{"notification", ` {"method":"n","jsonrpc":"2.0"} ` + "\n", Message{Kind: KindNotification, Version: "2.0", Method: "n"}, nil},
		{"result", `{"result":{},"id":7,"jsonrpc":"2.0"}`, Message{Kind: KindResponse, Version: "2.0", ID: "7", Result: json.RawMessage(`{}`)}, nil},
		{"result null", `{"jsonrpc":"2.0","id":7,"result":null}`, Message{Kind: KindResponse, Version: "2.0", ID: "7", Result: json.RawMessage(`null`)}, nil},
		{"error", `{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no","data":{"a":1}}}`,
			Message{Kind: KindResponse, Version: "2.0", ID: "7", Error: &Error{Code: -32601, Message: "no", Data: json.RawMessage(`{"a":1}`)}}, nil},
		{"error null beside a result", `{"jsonrpc":"2.0","id":7,"error":null,"result":1}`, Message{Kind: KindResponse, Version: "2.0", ID: "7", Result: json.RawMessage(`1`)}, nil},
		{"error without id", `{"jsonrpc":"2.0","error":{"code":-32700,"message":"parse"}}`, Message{Kind: KindResponse, Version: "2.0", Error: &Error{Code: -32700, Message: "parse"}}, nil},
		{"error with id null", `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}`, Message{Kind: KindResponse, Version: "2.0", ID: "null", Error: &Error{Code: 1}}, nil},
		{"error that is a string", `{"jsonrpc":"2.0","id":1,"error":"boom"}`, Message{Kind: KindResponse, Version: "2.0", ID: "1", Error: &Error{Message: "boom", Data: json.RawMessage(`"boom"`)}}, nil},
		{"code as a float", `{"jsonrpc":"2.0","id":1,"error":{"code":-32000.0,"message":"m"}}`, Message{Kind: KindResponse, Version: "2.0", ID: "1", Error: &Error{Code: -32000, Message: "m"}}, nil},
		{"unknown members", `{"jsonrpc":"2.0","method":"n","x":{"id":3},"y":"}"}`, Message{Kind: KindNotification, Version: "2.0", Method: "n"}, nil},
		{"escaped member name", `{"jsonrpc":"2.0","\u006dethod":"n"}`, Message{Kind: KindNotification, Version: "2.0", Method: "n"}, nil},
		{"names are exact", `{"jsonrpc":"2.0","Method":"n"}`, Message{Version: "2.0"}, ErrShape},
		{"request with id null", `{"jsonrpc":"2.0","id":null,"method":"n"}`, Message{Version: "2.0", ID: "null", Method: "n"}, ErrShape},
		{"id of another type", `{"jsonrpc":"2.0","id":{},"method":"n"}`, Message{Version: "2.0", Method: "n"}, ErrShape},
		{"method of another type", `{"jsonrpc":"2.0","id":1,"method":5}`, Message{Version: "2.0", ID: "1"}, ErrShape},
		{"nothing", `{}`, Message{}, ErrShape},
		{"array", `[1]`, Message{}, ErrShape},
		{"string", `"x"`, Message{}, ErrShape},
		{"empty", ``, Message{}, ErrSyntax},
		{"cut", `{"jsonrpc":"2.0","id":1,"result":{"a":`, Message{Version: "2.0", ID: "1", Result: json.RawMessage{}}, ErrSyntax},
		{"after the end", `{"jsonrpc":"2.0","method":"n"} x`, Message{Kind: KindRequest, Version: "2.0", Method: "n"}, ErrSyntax},
		{"control byte in a string", "{\"jsonrpc\":\"2.0\",\"method\":\"a\nb\"}", Message{Version: "2.0"}, ErrSyntax},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, err := Decode([]byte(tc.in), 0)
			if !errors.Is(err, tc.err) || (err != nil) != (tc.err != nil) {
				t.Fatalf("err = %v, want %v", err, tc.err)
			}
			got, _ := json.Marshal(m)
			want, _ := json.Marshal(tc.want)
			if !bytes.Equal(got, want) {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestDecodeDepth(t *testing.T) {
	nest := func(n int) []byte {
		return []byte(`{"jsonrpc":"2.0","id":9,"result":` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}")
	}
	if _, err := Decode(nest(9), 10); err != nil {
		t.Error(err)
	}
	if _, err := Decode(nest(10), 10); !errors.Is(err, ErrDepth) {
		t.Errorf("err = %v", err)
	}
	deep := nest(2_000_000)
	if _, err := Decode(deep, 0); !errors.Is(err, ErrDepth) {
		t.Errorf("err = %v", err)
	}
	if kind, id := Peek(deep); kind != KindResponse || id != "9" {
		t.Errorf("Peek = %v %s", kind, id)
	}
}

func TestPeek(t *testing.T) {
	for _, tc := range []struct {
		in   string
		kind Kind
		id   ID
	}{
		{`{"jsonrpc":"2.0","id":"a","result":{"x":"unfinis`, KindResponse, `"a"`},
		{`{"jsonrpc":"2.0","id":4,"error":{"code`, KindResponse, "4"},
		{`{"jsonrpc":"2.0","method":"x","params":{`, KindNotification, ""},
		{`{"jsonrpc":"2.0","id":4,"method":"x","params":{`, KindRequest, "4"},
		{`{"id":4,"level":"info"}`, KindInvalid, "4"},
		{`{"jsonrpc":"2.0","id":4`, KindInvalid, ""},
		{`nonsense`, KindInvalid, ""},
	} {
		if kind, id := Peek([]byte(tc.in)); kind != tc.kind || id != tc.id {
			t.Errorf("Peek(%s) = %v %q, want %v %q", tc.in, kind, id, tc.kind, tc.id)
		}
	}
}

func TestSplit(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want int // -1: no batch
	}{
		{`[]`, 0}, {`[{}]`, 1}, {` [ {"a":"]"} , {"b":[1]} ] `, 2}, {`{}`, -1}, {`[{}`, -1}, {`[{},]`, -1}, {`[{}] x`, -1}, {`[{} {}]`, -1}, {`[INFO] x`, -1},
	} {
		got, ok := Split([]byte(tc.in))
		if ok != (tc.want >= 0) || ok && len(got) != tc.want {
			t.Errorf("Split(%s) = %q, %v", tc.in, got, ok)
		}
	}
}

func TestIDText(t *testing.T) {
	if StringID("a\"b").Text() != `a"b` || IntID(-3).Text() != "-3" || StringID("1") == IntID(1) {
		t.Error("ids do not keep their type")
	}
}

// FuzzDecode: what passes is JSON, its members are JSON, it encodes to
// something that decodes to the same; nothing panics.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"a"}}`,
		`{"jsonrpc":"2.0","id":"é\u00e9\\","result":{"a":[1,-0.5e+3,true,null,"\ud83d\ude00"]}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"x","data":[[[]]]}}`,
		`[{"jsonrpc":"2.0","method":"n"},1]`, `{"a":01}`, `{"a":"\x"}`, "{\"a\":\"\xff\"}", `{"id":1e`, `{}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		Peek(b)
		if parts, ok := Split(b); ok && json.Valid(b) {
			for _, p := range parts {
				if !json.Valid(p) {
					t.Errorf("element %q of %q is no JSON", p, b)
				}
			}
		}
		m, err := Decode(b, 100)
		valid := json.Valid(b)
		if err == nil && !valid {
			t.Fatalf("decoded what is no JSON: %q", b)
		}
		if errors.Is(err, ErrSyntax) && valid {
			t.Fatalf("refused JSON: %q: %v", b, err)
		}
		if err != nil {
			return
		}
		for _, raw := range [][]byte{m.Params, m.Result, []byte(m.ID)} {
			if len(raw) > 0 && !json.Valid(raw) {
				t.Fatalf("member %q of %q is no JSON", raw, b)
			}
		}
		out, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode(out, 0)
		if err != nil || again.Kind != m.Kind || again.Method != m.Method || m.ID != "" && again.ID != m.ID || !bytes.Equal(again.Params, m.Params) {
			t.Fatalf("%q became %q: %v", b, out, err)
		}
	})
}

var statusNotification = []byte(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"786512e2-9e0d-44bd-8f29-789f320fe840","status":"working","statusMessage":"The operation is now in progress, step 3 of 12.","createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:40:00Z","ttl":60000,"pollInterval":5000}}`)

type benchTask struct {
	TaskID        string `json:"taskId"`
	Status        string `json:"status"`
	StatusMessage string `json:"statusMessage"`
	CreatedAt     string `json:"createdAt"`
	LastUpdatedAt string `json:"lastUpdatedAt"`
	TTL           int64  `json:"ttl"`
	PollInterval  int64  `json:"pollInterval"`
}

// The envelope's cost over a bare Unmarshal of the same payload: compare the
// two.
func BenchmarkEnvelopeAndUnmarshal(b *testing.B) {
	b.ReportAllocs()
	b.SetBytes(int64(len(statusNotification)))
	for b.Loop() {
		m, err := Decode(statusNotification, 0)
		if err != nil {
			b.Fatal(err)
		}
		var v benchTask
		if err := json.Unmarshal(m.Params, &v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBareUnmarshal(b *testing.B) {
	m, err := Decode(statusNotification, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(statusNotification)))
	for b.Loop() {
		var v benchTask
		if err := json.Unmarshal(m.Params, &v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode20MB(b *testing.B) {
	in := []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + strings.Repeat("line of text\\n", 20<<20/14) + `"}]}}`)
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		if _, err := Decode(in, 0); err != nil {
			b.Fatal(err)
		}
	}
}
