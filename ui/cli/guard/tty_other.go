//go:build !linux && !darwin

package guard

import (
	"encoding/json"
	"errors"
	"os"
	"syscall"
	"time"
)

// A console is given back by the system with the process.
func stateOf(*os.File) (json.RawMessage, error) { return nil, errors.ErrUnsupported }

func setState(*os.File, json.RawMessage) {}

func apart() *syscall.SysProcAttr { return nil }

func unmoved() {}

func endGroups(map[int]bool, time.Duration) {}
