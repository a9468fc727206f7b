//go:build !race

package survive

const raceDetector = false
