// Package setup turns configured servers into what the monitor connects to: a
// dialer for each, with its environment, headers, TLS and sign-in.
//
// It imports config, transport and the sign-in, mcp and monitor. It connects
// to nothing itself.
package setup
