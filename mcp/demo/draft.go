package demo

import "encoding/json"

var draftRules = rules{first: submitted, ttlFromEnd: true}

type draft struct{ *legacy }

func newDraft(s *session) *draft                      { return &draft{newLegacy(s)} }
func (d *draft) request(r *inbound)                   { r.fail(codeMethod, "Method not found") }
func (d *draft) notification(string, json.RawMessage) {}
func (d *draft) event(event)                          {}
