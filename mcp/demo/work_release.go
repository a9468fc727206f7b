package demo

import (
	"encoding/json"
	"fmt"
	"time"

	"mcptasks/taskmodel"
)

// releaseTools: what is done on the way to production, with people in it.
func releaseTools() []*tool {
	return []*tool{
		{
			name: "deploy_release", title: "Deploy a release", support: required, needs: []string{"form"},
			description: "Rolls a version out in steps. Asks for approval before the first step.",
			input: json.RawMessage(`{"type":"object","properties":{
				"service":{"type":"string","title":"Service","enum":["api","web","worker"],"x-mcp-header":"Service"},
				"version":{"type":"string","title":"Version","pattern":"^v[0-9]+\\.[0-9]+\\.[0-9]+$","default":"v4.12.0"},
				"environment":{"type":"string","title":"Environment","enum":["staging","production"],"default":"production"}},
				"required":["service","version"]}`),
			output: json.RawMessage(`{"type":"object","properties":{"service":{"type":"string"},"version":{"type":"string"},
				"rolledOut":{"type":"boolean"}},"required":["service","version","rolledOut"]}`),
			script: deploy,
			sample: []string{`{"service":"api","version":"v4.12.0","environment":"production"}`, `{"service":"worker","version":"v4.11.3","environment":"staging"}`},
		},
		{
			name: "rollback_release", title: "Roll a release back", support: optional, afterTool: "deploy_release",
			description: "Goes back to the version before. Listed only once something has been deployed.",
			input:       json.RawMessage(`{"type":"object","properties":{"service":{"type":"string","enum":["api","web","worker"]}},"required":["service"]}`),
			script: func(w *work) []step {
				s := w.str("service", "api")
				return join(w.counted(w.secs(12), 4, 0, 12, 12, "Rolling back", "instances"), done("Rolled back "+s, textResult(s+" runs the version before.")))
			},
		},
		{
			name: "sign_artifact", title: "Sign an artifact", support: optional, needs: []string{"url"}, visitFirst: true,
			only:        []taskmodel.Generation{taskmodel.GenCore, taskmodel.GenExtension},
			description: "Signs with a key that a person unlocks in the browser.",
			input:       json.RawMessage(`{"type":"object","properties":{"artifact":{"type":"string","title":"Artifact","default":"api.tar.zst"}},"required":["artifact"]}`),
			script: func(w *work) []step {
				art := w.str("artifact", "api.tar.zst")
				id := w.engine.newID()
				sig := w.hex(40)
				sign := join(stage(w.secs(3), "Signing", 0, 0), done("Signed "+art, result(nil, false, text("Signed "+art+"\nSignature "+sig),
					link("https://artifacts.example/"+art+".sig", art+".sig", "application/pgp-signature", "The signature"))))
				if w.visited {
					return join(stage(w.secs(4), "Hashing "+art, 0, 0), sign)
				}
				return join(stage(w.secs(4), "Hashing "+art, 0, 0),
					ask("The signing key is locked", func(a map[string]json.RawMessage) []step {
						if actionOf(a["unlock"]) != "accept" {
							return join(toolError("Not signed: the key stayed locked."))
						}
						return join(stage(w.secs(8), "Waiting for the key to be unlocked", 0, 0), sign)
					}, page("unlock", "Unlock the signing key for "+art+" in your browser.", "https://keys.example/unlock?artifact="+art+"&challenge="+w.hex(16), id)))
			},
			sample: []string{`{"artifact":"web.tar.zst"}`},
		},
		{
			name: "write_release_notes", title: "Write release notes", support: optional, needs: []string{"sampling"},
			description: "Collects the changes and asks the client's model for a text.",
			input:       json.RawMessage(`{"type":"object","properties":{"version":{"type":"string","default":"v4.12.0"},"audience":{"type":"string","enum":["customers","operators"],"default":"customers"}},"required":["version"]}`),
			script:      releaseNotes,
			sample:      []string{`{"version":"v4.12.0","audience":"customers"}`},
		},
		{
			name: "provision_preview", title: "Provision a preview", support: required, ttl: 30 * time.Minute,
			description: "Starts a preview environment. Runs only as a task.",
			input:       json.RawMessage(`{"type":"object","properties":{"branch":{"type":"string","title":"Branch","default":"main"},"size":{"type":"string","enum":["small","large"],"default":"small"}},"required":["branch"]}`),
			script: func(w *work) []step {
				b := w.str("branch", "main")
				host := "preview-" + w.hex(6) + ".example"
				return join(stage(w.secs(6), "Creating the network", 1, 5), stage(w.secs(10), "Starting the database", 2, 5),
					stage(w.secs(8), "Restoring a small data set", 3, 5), stage(w.secs(8), "Starting "+b, 4, 5), stage(w.secs(4), "Waiting for health", 5, 5),
					done("https://"+host, result(nil, false, text("Preview of "+b+" is up."), link("https://"+host+"/", host, "text/html", "The preview"))))
			},
			sample: []string{`{"branch":"feature/receipts","size":"large"}`},
		},
		{
			name: "rotate_secret", title: "Rotate a secret", support: optional, needs: []string{"form"}, only: []taskmodel.Generation{taskmodel.GenExtension},
			description: "Asks which environment before it begins, then rotates.",
			input:       json.RawMessage(`{"type":"object","properties":{"secret":{"type":"string","title":"Secret","default":"payments-api-key"}},"required":["secret"]}`),
			early: func(args map[string]any) (string, *question) {
				name, _ := args["secret"].(string)
				q := asks("environment", "Which environment's "+name+" is to be rotated?", `{"type":"object","properties":{
					"environment":{"type":"string","title":"Environment","oneOf":[{"const":"stg","title":"Staging"},{"const":"prd","title":"Production"}]},
					"reason":{"type":"string","title":"Reason","minLength":3}},"required":["environment"]}`)
				return "environment", &q
			},
			script: func(w *work) []step {
				return join(stage(w.secs(5), "Making the new secret", 1, 3), stage(w.secs(8), "Handing it to the services", 2, 3), stage(w.secs(5), "Revoking the old one", 3, 3),
					done("Rotated", textResult("Rotated "+w.str("secret", "the secret")+". Version "+w.hex(8)+" is live.")))
			},
		},
	}
}

func deploy(w *work) []step {
	service, version, env := w.str("service", "api"), w.str("version", "v4.12.0"), w.str("environment", "production")
	instances := 24
	n := float64(instances)
	what := service + " " + version
	held := func(why string) []step {
		return join(done("Held back: "+why, result(map[string]any{"service": service, "version": version, "rolledOut": false}, false,
			text(what+" was not deployed: "+why+"."))))
	}
	return join(
		logLine("info", "deploy "+what+" to "+env),
		stage(w.secs(5), "Pulling the image", 0, n),
		stage(w.secs(5), "Checking migrations", 0, n),
		stage(w.secs(4), "Comparing the configuration", 0, n),
		step{message: "Approval needed for " + env, patience: 30 * time.Minute,
			ask: []question{asks("approval", "Deploy "+what+" to "+env+"? 2 configuration keys change, no migration runs.", `{"type":"object","properties":{
				"strategy":{"type":"string","title":"Strategy","description":"How to roll out","oneOf":[
					{"const":"canary","title":"Canary: 10 %, then all"},{"const":"rolling","title":"Rolling: four at a time"},{"const":"bluegreen","title":"Blue-green"}],"default":"canary"},
				"ticket":{"type":"string","title":"Change ticket","description":"For example CHG-20417","pattern":"^CHG-[0-9]{4,6}$"},
				"notify":{"type":"boolean","title":"Tell the on-call engineer","default":true}},"required":["strategy","ticket"]}`)},
			then: func(a map[string]json.RawMessage) []step {
				c := contentOf(a["approval"])
				switch {
				case len(a) == 0:
					return held("nobody approved in time")
				case c == nil:
					return held("approval was not given")
				}
				first := max(1, instances/10)
				return join(
					logLine("notice", fmt.Sprintf("approved under %v, strategy %v", c["ticket"], c["strategy"])),
					stage(w.secs(8), fmt.Sprintf("Canary on %d of %d instances", first, instances), float64(first), n),
					stage(w.secs(8), "Watching error rates", float64(first), n),
					step{commit: true},
					w.counted(w.secs(24), 6, float64(first), n, n, "Rolling out", "instances"),
					stage(w.secs(4), "Draining the old version", n, n),
					done(what+" is live in "+env, result(map[string]any{"service": service, "version": version, "rolledOut": true}, false,
						text(fmt.Sprintf("%s runs on %d instances in %s. Error rate 0.02 %%, p99 %d ms.", what, instances, env, w.between(80, 140))),
						link("https://status.example/"+service, service+" status", "text/html", "Live status"))))
			}})
}

func releaseNotes(w *work) []step {
	version, audience := w.str("version", "v4.12.0"), w.str("audience", "customers")
	params := enc(struct {
		Messages    []any          `json:"messages"`
		Preferences map[string]any `json:"modelPreferences"`
		System      string         `json:"systemPrompt"`
		Temperature float64        `json:"temperature"`
		MaxTokens   int            `json:"maxTokens"`
	}{
		Messages: []any{
			map[string]any{"role": "user", "content": text("Here are the merged changes for " + version + ":\n- receipts can be sent again from the order page\n- export resumes after a lost connection\n- fixed: rounding of half cents in refunds\n- the worker uses 30 % less memory")},
			map[string]any{"role": "assistant", "content": text("Understood. Who reads them?")},
			map[string]any{"role": "user", "content": text("The " + audience + ". At most 120 words, no marketing.")},
		},
		Preferences: map[string]any{"hints": []any{map[string]any{"name": "claude"}}, "intelligencePriority": 0.6, "speedPriority": 0.4},
		System:      "You write release notes. Plain sentences, most important first.",
		Temperature: 0.3, MaxTokens: 400,
	})
	return join(w.counted(w.secs(6), 3, 0, 47, 47, "Reading", "changes"),
		ask("Waiting for a text", func(a map[string]json.RawMessage) []step {
			var r struct {
				Model   string          `json:"model"`
				Content json.RawMessage `json:"content"`
			}
			if err := json.Unmarshal(a["draft"], &r); err != nil || len(r.Content) == 0 {
				return join(toolError("No text: the client did not complete the prompt."))
			}
			var one struct {
				Text string `json:"text"`
			}
			if json.Unmarshal(r.Content, &one) != nil || one.Text == "" {
				var many []struct {
					Text string `json:"text"`
				}
				_ = json.Unmarshal(r.Content, &many)
				for _, m := range many {
					one.Text += m.Text
				}
			}
			return join(stage(w.secs(4), "Setting the text", 0, 0),
				done("Notes for "+version, result(nil, false, text("# "+version+"\n\n"+one.Text+"\n\n_Written with "+r.Model+"._"))))
		}, question{key: "draft", method: "sampling/createMessage", params: params}))
}
