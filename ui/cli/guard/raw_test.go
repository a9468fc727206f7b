//go:build linux

package guard

import (
	"os"

	"golang.org/x/term"
)

func raw(f *os.File) { _, _ = term.MakeRaw(int(f.Fd())) }
