// Package form makes a JSON Schema that came from a server into fields that a
// person can fill, keeps what has been filled in as a Draft, says what is
// wrong with it in words, and builds the answer.
//
// It reads the subset that MCP elicitations use in all its spellings, and what
// the input schemas of tools add to it: lists, nullable fields and, written as
// JSON, everything else. What it cannot show as a field it never drops: such a
// field says why and takes JSON.
//
// A schema is hostile until proven otherwise: its size, depth and number of
// fields are bounded (Limits), nothing is ever fetched, a reference that leads
// in a circle or out of the document is ignored, and a constraint that cannot
// be checked disables itself; Form.Notes says so.
//
// The package is pure: no clock, no I/O, no screen. Titles, descriptions and
// option titles are raw remote text. It imports the standard library and
// santhosh-tekuri/jsonschema, which has the last word on whether an answer
// fits its schema.
package form
