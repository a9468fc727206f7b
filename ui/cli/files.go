package cli

import (
	"io"
	"os"
)

// openOr opens a file, or gives standard input for "-".
func openOr(path string, stdin io.Reader) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(stdin), nil
	}
	return os.Open(path)
}

// toFile writes a file that only its owner may read, or standard output for "-".
func toFile(path string, stdout io.Writer, b []byte) error {
	if path == "-" {
		_, err := stdout.Write(b)
		return err
	}
	return os.WriteFile(path, b, 0o600)
}
