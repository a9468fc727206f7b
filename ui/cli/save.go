package cli

import (
	"mcptasks/taskmodel"
)

// save writes every content block of a result to a file of its own.
func (s *session) save(k taskmodel.Key, o taskmodel.Outcome, dir string) error {
	_ = o
	return failf("failed", k.Server, "cannot save to %s", dir)
}
