package proctest

import "time"

// Patience bounds every wait for what has to come. It is there for a machine
// that does nothing, not for one that is busy: nothing is judged by how long it
// takes.
const Patience = 4 * time.Minute

// Until asks again and again, with a pause between, whether something holds, and
// reports whether it came to hold within Patience.
func Until(pause time.Duration, ok func() bool) bool {
	for end := time.Now().Add(Patience); !ok(); time.Sleep(pause) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
