//go:build !linux

package lean

// DropText does nothing here.
func DropText() {}
