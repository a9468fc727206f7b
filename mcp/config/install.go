package config

import "errors"

// A TapChange is a change of one entry of a client's file.
type TapChange struct {
	Entry string
}

// TapEntry is to come.
func TapEntry(file, server, program string, install bool) (TapChange, error) {
	return TapChange{}, errors.New("not yet")
}

// Save is to come.
func (c TapChange) Save() (string, error) { return "", errors.New("not yet") }
