package main

import (
	"context"
	"encoding/json"
	"image"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcptasks/mcp/monitor"
	"mcptasks/mcp/setup"
	"mcptasks/taskmodel"
	"mcptasks/ui"
	"mcptasks/ui/screentest"
	"mcptasks/ui/screentest/picture"
)

// shown is the clock of the pictures.
var shown = time.Date(2026, 11, 29, 14, 2, 31, 0, time.UTC)

// A scene is one picture: a window, and what is pressed in it.
type scene struct {
	name  string
	w, h  int
	light bool
	theme string
	tap   bool // an agent's session is tapped beside the three servers
	act   func(t *screentest.Terminal)
}

func press(keys ...string) func(*screentest.Terminal) {
	return func(t *screentest.Terminal) { t.Press(keys...) }
}

// scenes are the pictures of the README.
var scenes = []scene{
	{name: "list", w: 120, h: 32},
	{name: "list-light", w: 120, h: 32, light: true},
	{name: "wide", w: 170, h: 40},
	{name: "detail", w: 120, h: 36, act: func(t *screentest.Terminal) {
		t.Press("/").Type("tool:build has:progress status:working").Press("enter", "enter")
	}},
	{name: "form", w: 100, h: 30, act: func(t *screentest.Terminal) {
		t.Press("/").Type("tool:deploy_release server:deploy").Press("enter", "a")
	}},
	{name: "form-80x24", w: 80, h: 24, act: press("a")},
	{name: "form-160x50", w: 160, h: 50, act: press("a")},
	{name: "url", w: 100, h: 28, act: func(t *screentest.Terminal) {
		t.Press("/").Type("tool:sign_artifact server:ci").Press("enter", "a")
	}},
	{name: "sampling", w: 100, h: 32, act: func(t *screentest.Terminal) {
		t.Press("/").Type("tool:write_release_notes server:deploy").Press("enter", "a")
	}},
	{name: "result", w: 110, h: 34, act: func(t *screentest.Terminal) {
		t.Press("/").Type("status:failed tool:run_tests").Press("enter", "r").Pass(2 * time.Second)
	}},
	{name: "servers", w: 120, h: 36, act: press("s")},
	{name: "inbox", w: 100, h: 20, act: press("i")},
	{name: "start", w: 110, h: 28, act: press("n")},
	{name: "wire", w: 140, h: 30, act: func(t *screentest.Terminal) {
		t.Press("w", "/").Type("id:efae3c95").Press("enter")
	}},
	{name: "filter", w: 110, h: 26, act: func(t *screentest.Terminal) { t.Press("/").Type("server:ci status:") }},
	{name: "tap", w: 160, h: 34, tap: true, act: func(t *screentest.Terminal) {
		t.Press("/").Type("!server:lab status:working,input_required").Press("enter")
		t.Press("G", "up", "up")
		t.Pass(time.Until(shown.Add(2500 * time.Millisecond))) // the middle of a second, whatever the keys took
	}},
	{name: "help", w: 140, h: 42, act: press("?")},
}

// begun are the calls that are made before a picture is taken, so that it has
// tasks of ours with progress.
var begun = []monitor.StartRequest{
	{Server: "ci", Tool: "build", Args: json.RawMessage(`{"target":"web"}`), TTL: 30 * time.Minute},
	{Server: "ci", Tool: "run_tests", Args: json.RawMessage(`{"package":"./billing/..."}`), TTL: time.Hour},
	{Server: "deploy", Tool: "warm_cache", Args: json.RawMessage(`{"region":"us-east"}`)},
	{Server: "lab", Tool: "run_protocol", Args: json.RawMessage(`{"protocol":"growth-curve"}`), TaskID: "6a1f0c3e-5b7d-4e02-9c11-8f2d3b4a5c6d"},
}

// A steady monitor polls when the pictures say so and not by its own clock,
// whose jitter would make each picture another one.
type steady struct{ *monitor.Monitor }

// Paused is what the screen asks: the beat has changed, polling goes on.
func (steady) Paused() bool { return false }

// look polls every unfinished task once.
func (s steady) look(ctx context.Context) {
	var open []taskmodel.Key
	s.Board().Tasks(func(t *taskmodel.Task) bool {
		if !t.Terminal() && t.Tap == "" {
			open = append(open, t.Key)
		}
		return true
	})
	for _, k := range open {
		_, _ = s.Poll(ctx, k)
	}
}

// paint runs a scene on the real demo under a fake clock and draws its screen.
func paint(t *testing.T, s scene) (img image.Image, text string) {
	synctest.Test(t, func(t *testing.T) {
		// The demo works for half a minute before the picture is taken.
		time.Sleep(time.Until(shown.Add(-30 * time.Second)))
		ctx, stop := context.WithCancel(context.Background())
		opts := setup.DemoOptions{Version: "demo", Seed: 1, Still: true}
		var tap *tapped
		if s.tap {
			tap = newTapped(t)
			tap.begin(ctx)
			opts.Journal, opts.Taps = memory{tap.read}, func(string) bool { return true }
		}
		fleet := setup.Demo(opts)
		var wg sync.WaitGroup
		wg.Go(func() { _ = fleet.Run(ctx) })
		if tap != nil {
			wg.Go(func() { tap.live(ctx) })
		}
		mon := steady{fleet.Monitor}
		mon.Pause(true)
		term := screentest.Start(t, s.w, s.h, func(ctx context.Context, tty screentest.TTY) error {
			theme := s.theme
			if theme == "" {
				theme = "dark"
				if s.light {
					theme = "light"
				}
			}
			return ui.Run(ctx, mon, ui.Options{Theme: theme, Input: tty.Input, Output: tty.Output, Env: tty.Env, Program: tty.Program,
				Started: tty.Started, Now: func() time.Time { return time.Now().UTC() }})
		})
		term.Pass(12 * time.Second)
		for _, r := range begun {
			if _, err := mon.Start(ctx, r); err != nil {
				t.Fatal(err)
			}
		}
		for time.Until(shown) > 0 {
			term.Pass(time.Until(time.Now().Truncate(2 * time.Second).Add(3 * time.Second)))
			mon.look(ctx)
		}
		if s.act != nil {
			s.act(term)
		}
		term.Settle()
		p, err := picture.New(s.light)
		if err != nil {
			t.Fatal(err)
		}
		img, text = p.Paint(term.Cells()), term.Screen()
		term.Close()
		stop()
		wg.Wait()
		if tap != nil {
			tap.close(context.Background())
		}
	})
	return img, text
}
