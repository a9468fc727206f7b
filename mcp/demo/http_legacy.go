package demo

type legacyHTTP struct{}

func newLegacyHTTP(*Server) *legacyHTTP { return &legacyHTTP{} }
func (*legacyHTTP) close()              {}
