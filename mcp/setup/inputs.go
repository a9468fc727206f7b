package setup

import (
	"fmt"
	"slices"

	"mcptasks/mcp/config"
)

// InputVariable is the environment variable that gives an input without
// asking.
func InputVariable(id string) string { return "MCPTASKS_INPUT_" + id }

// AskInputs fills in what files want asked for, for those servers that are
// about to be started: the ones that start by themselves and the ones named.
// An input is asked for once, however many servers of its file use it. What is
// neither in the environment nor given by ask stays open; such a server cannot
// be started. ask may be nil.
func AskInputs(servers []config.Server, named []string, getenv func(string) string, ask func(config.Server, config.Input) (string, error)) ([]config.Server, error) {
	type key struct{ source, id string }
	given := map[key]string{}
	out := slices.Clone(servers)
	for i, s := range out {
		if len(s.Inputs) == 0 || s.Disabled != "" || !s.Autostart() && !slices.Contains(named, s.Name) {
			continue
		}
		values := map[string]string{}
		for _, in := range s.Inputs {
			k := key{s.Source, in.ID}
			v, ok := given[k]
			if !ok {
				if v = getenv(InputVariable(in.ID)); v == "" && ask != nil {
					var err error
					if v, err = ask(s, in); err != nil {
						return nil, fmt.Errorf("asking for %s: %w", in.ID, err)
					}
				}
				given[k] = v
			}
			if v != "" {
				values[in.ID] = v
			}
		}
		if len(values) == len(s.Inputs) {
			out[i] = s.Fill(values)
		}
	}
	return out, nil
}

// InputPrompt asks for an input in words.
func InputPrompt(s config.Server, in config.Input) string {
	prompt := s.Name + " asks for " + in.ID
	if in.Description != "" && in.Description != in.ID {
		prompt += " (" + in.Description + ")"
	}
	if in.Default != "" && !in.Password {
		prompt += " [" + in.Default + "]"
	}
	return prompt + ": "
}
