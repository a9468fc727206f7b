// Package process tests the built program as a process: exit codes, signals,
// pipes, what it leaves running, TLS, proxies, sockets and sign-in. The servers
// are in the tests or the program's own. It holds tests only; each has a home
// folder of its own and waits for events, never for a while.
package process
