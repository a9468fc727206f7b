package main

import (
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPicturesAreUpToDate draws every picture again and compares its pixels
// with the committed file. `go run ./screenshots` makes them anew.
func TestPicturesAreUpToDate(t *testing.T) {
	if testing.Short() {
		t.Skip("draws every picture")
	}
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			img, screen := paint(t, s)
			f, err := os.Open(s.name + ".png")
			if err != nil {
				t.Fatalf("%v; go run ./screenshots makes it", err)
			}
			defer func() { _ = f.Close() }()
			old, err := png.Decode(f)
			if err != nil {
				t.Fatal(err)
			}
			if n := differ(old, img); n > 0 {
				t.Errorf("%s.png is out of date by %d pixels; go run ./screenshots makes it anew. The screen now is\n%s", s.name, n, screen)
			}
		})
	}
}

func differ(a, b image.Image) (n int) {
	if a.Bounds() != b.Bounds() {
		return a.Bounds().Dx()*a.Bounds().Dy() + 1
	}
	for y := a.Bounds().Min.Y; y < a.Bounds().Max.Y; y++ {
		for x := a.Bounds().Min.X; x < a.Bounds().Max.X; x++ {
			r1, g1, b1, a1 := a.At(x, y).RGBA()
			r2, g2, b2, a2 := b.At(x, y).RGBA()
			if r1>>8 != r2>>8 || g1>>8 != g2>>8 || b1>>8 != b2>>8 || a1 != a2 {
				n++
			}
		}
	}
	return n
}

// TestNoPictureIsOrphaned finds pictures that no scene draws any more.
func TestNoPictureIsOrphaned(t *testing.T) {
	known := map[string]bool{}
	for _, s := range scenes {
		known[s.name+".png"] = true
	}
	files, err := filepath.Glob("*.png")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !known[f] {
			t.Errorf("%s is drawn by no scene (there are %s)", f, strings.Join(names(), ", "))
		}
	}
}

func names() (out []string) {
	for _, s := range scenes {
		out = append(out, s.name)
	}
	return out
}
