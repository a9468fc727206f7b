// Command screenshots draws the pictures of the README from the real screens on
// the real demo, at a fixed clock:
//
//	go run ./screenshots [NAME…]
//
// It writes screenshots/NAME.png. A test fails when a committed picture is out
// of date. The screens run under testing/synctest, which needs a test to run
// in: this program makes one.
package main

import (
	"flag"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func main() {
	testing.Init()
	text := flag.Bool("text", false, "print the screens as text, too")
	dir := flag.String("dir", "screenshots", "where to write")
	flag.Parse()
	var tests []testing.InternalTest
	for _, s := range scenes {
		if flag.NArg() > 0 && !slices.Contains(flag.Args(), s.name) {
			continue
		}
		tests = append(tests, testing.InternalTest{Name: s.name, F: func(t *testing.T) {
			img, screen := paint(t, s)
			if *text {
				fmt.Println(screen)
			}
			f, err := os.Create(filepath.Join(*dir, s.name+".png"))
			if err != nil {
				t.Fatal(err)
			}
			enc := png.Encoder{CompressionLevel: png.BestCompression}
			if err := enc.Encode(f, img); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}})
	}
	os.Exit(testing.MainStart(deps{}, tests, nil, nil, nil).Run())
}
