// Package faulty is a demo server that goes wrong on purpose. A script says at
// which message, and what then happens: an answer that is late, doubled, lost,
// out of order, under another id, an error, no JSON, huge, or sent byte by
// byte; a connection that is closed, reset or half closed; a process that
// crashes, hangs, ignores the end of its input or leaves children behind; HTTP
// with every wrong status, type and encoding; notifications that are lost,
// repeated or late; a restart with and without the tasks; a clock that steps.
//
// A script is rules, one a line or separated by semicolons:
//
//	POINT[:METHOD][~TEXT][#NTH][*TIMES] ACTION [ARGUMENT]
//
//	response:tasks/get#2 late 3s         the second answer to tasks/get
//	response:tasks/get~"completed" reset the first one that has this in it
//	response:tasks/list* error -32601    each answer to tasks/list
//	post:tools/call*2 status 503 Retry-After=2
//
// Points are request, response, notification, question (the server's request),
// answer (the client's response to it) and told (the client's notification);
// start and eof of a connection or process; post, get and delete of HTTP (METHOD
// "answer" is the POST of a response). A METHOD that is left out, or *, is any. NTH counts the matches from 1; TIMES
// is how many from there on, a bare * is all. TEXT has no blank, # or * in it. Of several rules that match one
// message the first that is due acts. The actions are in script.go.
//
// The same scripts work over three carriers: in memory (Dialer; under
// testing/synctest too), over HTTP (Handler) and as a process on stdio (Stdio,
// which `mcptasks demo-server --fault SCRIPT` calls).
//
// It imports demo, jsonrpc and transport. It is for tests: nothing else may
// import it but the hidden flag.
package faulty
