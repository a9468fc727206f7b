package demo

import "encoding/json"

var extensionRules = rules{first: working, cooperative: true}

type extension struct{ s *session }

func newExtension(s *session) *extension                  { return &extension{s} }
func (d *extension) request(r *inbound)                   { r.fail(codeMethod, "Method not found") }
func (d *extension) notification(string, json.RawMessage) {}
func (d *extension) event(event)                          {}
