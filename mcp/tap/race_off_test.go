//go:build !race

package tap

const raceDetector = false
