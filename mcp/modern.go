package mcp

import (
	"encoding/json"
	"maps"
)

// Keys of a request's _meta in the modern era (2026-07-28 basic/index).
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaClientInfo   = "io.modelcontextprotocol/clientInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaServerInfo   = "io.modelcontextprotocol/serverInfo"
	metaLogLevel     = "io.modelcontextprotocol/logLevel"
	extensionTasks   = "io.modelcontextprotocol/tasks"
)

// headerVersion is the HTTP field that repeats metaVersion.
const headerVersion = "MCP-Protocol-Version"

// modernParams gives params the metadata that every request of the modern era
// carries, and the header fields that go with it. withTasks declares the tasks
// extension: not for a plain call, which must not become a task. params is not
// changed; a _meta that it has is kept under the new keys.
//
// On a session of another era both come back as they are, so that what is
// common to the eras (tools/list) can be written once.
func (s *session) modernParams(params map[string]any, withTasks bool) (map[string]any, map[string]string) {
	if !s.modern.Load() {
		return params, nil
	}
	return s.modernRequest(params, withTasks, s.getInfo().ProtocolVersion)
}

// modernRequest is modernParams for a session whose era is not known yet.
func (s *session) modernRequest(params map[string]any, withTasks bool, version string) (map[string]any, map[string]string) {
	meta := map[string]any{}
	switch m := params["_meta"].(type) {
	case map[string]any:
		maps.Copy(meta, m)
	case map[string]json.RawMessage:
		for k, v := range m {
			meta[k] = v
		}
	}
	meta[metaVersion] = version
	meta[metaClientInfo] = s.clientInfo()
	meta[metaCapabilities] = s.modernCapabilities(withTasks)
	if l := s.logLevel(); l != "" {
		meta[metaLogLevel] = l
	}
	out := make(map[string]any, len(params)+1)
	maps.Copy(out, params)
	out["_meta"] = meta
	return out, map[string]string{headerVersion: version}
}

// modernCapabilities are what we declare with a request of the modern era.
func (s *session) modernCapabilities(withTasks bool) map[string]any {
	c := map[string]any{"sampling": map[string]any{}}
	if !s.opts.NoElicitation {
		c["elicitation"] = map[string]any{"form": map[string]any{}, "url": map[string]any{}}
	}
	if s.opts.Roots != nil {
		c["roots"] = map[string]any{}
	}
	if withTasks && s.opts.Generation != "none" {
		c["extensions"] = map[string]any{extensionTasks: map[string]any{}}
	}
	return c
}

type implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

// clientInfo is how we introduce ourselves.
func (s *session) clientInfo() implementation {
	i := implementation{Name: s.opts.ClientName, Version: s.opts.ClientVersion}
	if i.Name == "" {
		i.Name = "mcptasks"
	}
	if i.Version == "" {
		i.Version = "0"
	}
	return i
}

func (s *session) logLevel() string {
	l, _ := s.level.Load().(string)
	return l
}
