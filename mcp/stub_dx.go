package mcp

// newDraft and newExtension stand in until draft.go and extension.go are here.
func newDraft(s *session) generation     { return nil }
func newExtension(s *session) generation { return nil }
