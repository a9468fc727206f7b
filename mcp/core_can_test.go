package mcp

import (
	"encoding/json"
	"testing"

	"mcptasks/taskmodel"
)

// L3: what a server does not declare is not asked for, and the row says so
// (2025-11-25 tasks, "Server Capabilities"); true is as good as {}.
func TestL3_WhatIsDeclared(t *testing.T) {
	for in, want := range map[string]bool{
		`{}`: false, `{"list":null,"cancel":null,"requests":null}`: false, `{"list":false,"cancel":false,"requests":{"tools":{"call":false}}}`: false,
		`{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`: true, `{"list":true,"cancel":true,"requests":{"tools":{"call":true}}}`: true,
	} {
		can := coreCan(Info{Generation: taskmodel.GenCore, Capabilities: json.RawMessage(`{"tasks":` + in + `}`)}, "")
		if can.List != want || can.Cancel != want || can.Start != want {
			t.Errorf("%s: %+v", in, can)
		}
		if (can.ListWhy == "") != want || (can.CancelWhy == "") != want || (can.StartWhy == "") != want {
			t.Errorf("%s: said %q, %q, %q", in, can.ListWhy, can.CancelWhy, can.StartWhy)
		}
	}
}
