// Package monitor watches servers: one supervisor per server connects, lists,
// polls, listens, routes questions and retries; one goroutine owns the board
// and publishes its versions. Screens and scripts see it through a few plain
// commands and events that could travel over a socket.
//
// It imports mcp and its parts, taskmodel and its parts. It never knows what
// is on screen, except for which tasks it should look at first (Focus), and
// never writes to the terminal.
package monitor
