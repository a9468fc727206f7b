package demo

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
)

// The pieces of a CallToolResult. None of them sets _meta or resultType: those
// are the generations' business.

type content map[string]any

func text(s string) content { return content{"type": "text", "text": s} }

func link(uri, name, mime, description string) content {
	return content{"type": "resource_link", "uri": uri, "name": name, "mimeType": mime, "description": description}
}

func embedded(uri, mime, body string) content {
	return content{"type": "resource", "resource": map[string]any{"uri": uri, "mimeType": mime, "text": body}}
}

func picture(b []byte) content {
	return content{"type": "image", "mimeType": "image/png", "data": base64.StdEncoding.EncodeToString(b)}
}

// result is a CallToolResult; structured may be nil.
func result(structured any, isError bool, c ...content) json.RawMessage {
	r := struct {
		Content    []content `json:"content"`
		Structured any       `json:"structuredContent,omitempty"`
		IsError    bool      `json:"isError"`
	}{c, structured, isError}
	return enc(r)
}

func textResult(s string) json.RawMessage { return result(nil, false, text(s)) }

// done ends a job well.
func done(message string, r json.RawMessage) step {
	return finish(outcome{status: completed, message: message, result: r})
}

// wrong ends a job with the tool's own error.
func wrong(message string, r json.RawMessage) step {
	return finish(outcome{status: completed, message: message, result: r, isError: true})
}

// toolError is wrong with a sentence only.
func toolError(sentence string) step {
	return wrong(sentence, result(nil, true, text(sentence)))
}

// broken ends a job with a JSON-RPC error.
func broken(code int, message string) step {
	return finish(outcome{status: failed, message: message, err: &rpcError{Code: code, Message: message}})
}

// chart draws bars, one pixel column each, as a PNG of 240×60.
func chart(rng *rand.Rand) []byte {
	img := image.NewPaletted(image.Rect(0, 0, 240, 60), color.Palette{
		color.RGBA{0xff, 0xff, 0xff, 0xff}, color.RGBA{0x2f, 0x6f, 0xb0, 0xff}, color.RGBA{0xc8, 0xd4, 0xe0, 0xff},
	})
	h := 30.0
	for x := range 240 {
		h = min(max(h+rng.Float64()*6-2.8, 4), 58)
		for y := range 60 {
			switch {
			case float64(60-y) <= h && x%6 != 5:
				img.SetColorIndex(x, y, 1)
			case y%15 == 0:
				img.SetColorIndex(x, y, 2)
			}
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		return nil
	}
	return b.Bytes()
}

// form is the params of a form elicitation, its fields in the order in which
// they stand in the schema.
func form(message string, schema json.RawMessage) json.RawMessage {
	return json.RawMessage(`{"mode":"form","message":` + string(enc(message)) + `,"requestedSchema":` + string(schema) + `}`)
}

// asks is a form question.
func asks(key, message, schema string) question {
	s := compact(schema)
	return question{key: key, method: "elicitation/create", schema: s, params: form(message, s)}
}

// page is a URL question.
func page(key, message, url, elicitID string) question {
	return question{
		key: key, method: "elicitation/create", elicitID: elicitID,
		params: json.RawMessage(`{"mode":"url","message":` + string(enc(message)) + `,"url":` + string(enc(url)) +
			`,"elicitationId":` + string(enc(elicitID)) + `}`),
	}
}
