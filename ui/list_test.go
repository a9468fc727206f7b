package ui_test

import (
	"testing"
)

func TestList(t *testing.T) {
	for _, size := range []struct {
		name string
		w, h int
	}{{"80x24", 80, 24}, {"60x20", 60, 20}, {"120x40", 120, 40}, {"200x60", 200, 60}, {"160x50", 160, 50}} {
		t.Run(size.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				term := run(t, fleet(), size.w, size.h, nil)
				term.Golden("list-" + size.name)
			})
		})
	}
}
