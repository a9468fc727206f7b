package setup

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"mcptasks/mcp/config"
	"mcptasks/mcp/transport/signin"
)

// InputVariable is the environment variable that gives an input without
// asking.
func InputVariable(id string) string { return "MCPTASKS_INPUT_" + id }

// Inputs says where the values come from that files want asked for.
type Inputs struct {
	Getenv func(string) string
	// Ask asks a person; nil: there is nobody to ask.
	Ask func(config.Server, config.Input) (string, error)
	// Keep holds what was asked for beyond this process: the keyring and no
	// file, since a password may be among it. nil, and a keyring that cannot be
	// used, keep it in memory.
	Keep signin.Store
	Log  *slog.Logger
}

// Fill fills in what files want asked for, for those servers that are about to
// be started: the ones that start by themselves and the ones named. An input is
// asked for once, however many servers of its file use it. What is neither in
// the environment nor kept nor given by Ask stays open; such a server cannot be
// started.
func (in Inputs) Fill(servers []config.Server, named []string) ([]config.Server, error) {
	type key struct{ source, id string }
	given := map[key]string{}
	out := slices.Clone(servers)
	for i, s := range out {
		if len(s.Inputs) == 0 || s.Disabled != "" || !s.Autostart() && !slices.Contains(named, s.Name) {
			continue
		}
		values := map[string]string{}
		for _, input := range s.Inputs {
			k := key{s.Source, input.ID}
			v, ok := given[k]
			if !ok {
				var err error
				if v, err = in.value(s, input); err != nil {
					return nil, fmt.Errorf("asking for %s: %w", input.ID, err)
				}
				given[k] = v
			}
			if v != "" {
				values[input.ID] = v
			}
		}
		if len(values) == len(s.Inputs) {
			out[i] = s.Fill(values)
		}
	}
	return out, nil
}

func (in Inputs) value(s config.Server, input config.Input) (string, error) {
	if v := in.Getenv(InputVariable(input.ID)); v != "" {
		return v, nil
	}
	if in.Keep != nil {
		if v, err := in.Keep.Load(inputKey(s, input)); err == nil && v != "" {
			return v, nil
		}
	}
	if in.Ask == nil {
		return "", nil
	}
	v, err := in.Ask(s, input)
	if err == nil && v != "" && len(input.Options) > 0 && !slices.Contains(input.Options, v) {
		return "", fmt.Errorf("%q is none of %s", v, strings.Join(input.Options, ", "))
	}
	if err == nil && v != "" && in.Keep != nil {
		if err := in.Keep.Save(inputKey(s, input), v); err != nil && in.Log != nil {
			in.Log.Info("the keyring cannot be used; the input is kept in memory", "server", s.Name, "input", input.ID, "err", err)
		}
	}
	return v, err
}

func inputKey(s config.Server, in config.Input) string { return "input " + in.ID + " of " + s.Source }

// forgetInputs drops a server's inputs and reports whether any was kept.
func forgetInputs(s config.Server, keep signin.Store) bool {
	any := false
	for _, in := range s.Inputs {
		if _, err := keep.Load(inputKey(s, in)); err == nil {
			any = keep.Delete(inputKey(s, in)) == nil || any
		}
	}
	return any
}

// InputPrompt asks for an input in words.
func InputPrompt(s config.Server, in config.Input) string {
	prompt := s.Name + " asks for " + in.ID
	if in.Description != "" && in.Description != in.ID {
		prompt += " (" + in.Description + ")"
	}
	if len(in.Options) > 0 {
		prompt += ", one of " + strings.Join(in.Options, ", ")
	}
	if in.Default != "" && !in.Password {
		prompt += " [" + in.Default + "]"
	}
	return prompt + ": "
}
