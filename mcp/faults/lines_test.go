package faults

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// lines are the faults seen in the field, by their names.
var lines = strings.Fields(`L1 L2 L3 L4
	S1 S2 S3 S4 S5 S6 S7 S8 S9 S10 S11 S12 S13 S14 S15 S16
	I1 I2 I3 I4 I5 I6 I7 I8 I9 I10 I11
	T1 T2 T3 T4 T5 T6 T7
	U1 U2 U3 U4`)

// TestEveryLineHasATest: each fault seen in the field has a test named after
// it, in the package where its kind belongs.
func TestEveryLineHasATest(t *testing.T) {
	name := regexp.MustCompile(`^func Test((?:[LSITU]\d+_)+)`)
	found := map[string][]string{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		scan := bufio.NewScanner(f)
		scan.Buffer(nil, 1<<20)
		for scan.Scan() {
			if m := name.FindStringSubmatch(scan.Text()); m != nil {
				for _, l := range strings.Split(strings.TrimSuffix(m[1], "_"), "_") {
					found[l] = append(found[l], path)
				}
			}
		}
		return scan.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		if len(found[l]) == 0 {
			t.Errorf("%s has no test named after it", l)
		}
		delete(found, l)
	}
	for l, in := range found {
		t.Errorf("there is no line %s, after which tests are named in %v", l, in)
	}
}
