// Command tasks is a server with 2025-11-25 tasks made with mcp-go: count takes
// its time and can be cancelled, refuse fails, report is optional, now has
// no tasks. It speaks stdio, or Streamable HTTP with -listen.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func main() {
	listen := flag.String("listen", "", "serve Streamable HTTP on this address")
	flag.Parse()
	s := server.NewMCPServer("mcp-go tasks", "1.0.0",
		server.WithTaskCapabilities(true, true, true), server.WithToolCapabilities(true), server.WithLogging())
	s.AddTaskTool(mcp.NewTool("count", mcp.WithDescription("Counts to n, a number each delay milliseconds."),
		mcp.WithTaskSupport(mcp.TaskSupportRequired),
		mcp.WithNumber("n", mcp.Required()), mcp.WithNumber("delay", mcp.DefaultNumber(50))), count)
	s.AddTaskTool(mcp.NewTool("refuse", mcp.WithDescription("Fails."), mcp.WithTaskSupport(mcp.TaskSupportRequired)), refuse)
	s.AddTaskTool(mcp.NewTool("report", mcp.WithDescription("Reports, as a task or not."),
		mcp.WithTaskSupport(mcp.TaskSupportOptional)), report)
	s.AddTool(mcp.NewTool("now", mcp.WithDescription("Tells the time.")), now)
	if *listen == "" {
		if err := server.ServeStdio(s); err != nil {
			log.Fatal(err)
		}
		return
	}
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s/mcp\n", l.Addr())
	mux := http.NewServeMux()
	mux.Handle("/mcp", server.NewStreamableHTTPServer(s))
	log.Fatal(http.Serve(l, mux))
}

// count takes no notice of its context: mcp-go 1.2.1 ends a task's context with
// the request that made the task, in the same words as tasks/cancel does, so a
// count that heeded it would be cancelled before its first step. mcp-go marks a
// cancelled task by itself and does not look at what comes back later.
func count(_ context.Context, r mcp.CallToolRequest) (*mcp.CreateTaskResult, error) {
	n, delay := r.GetInt("n", 1), time.Duration(r.GetInt("delay", 50))*time.Millisecond
	time.Sleep(time.Duration(n) * delay)
	return &mcp.CreateTaskResult{Content: []mcp.Content{mcp.NewTextContent(fmt.Sprintf("counted to %d", n))}}, nil
}

func refuse(context.Context, mcp.CallToolRequest) (*mcp.CreateTaskResult, error) {
	return nil, errors.New("the disk is full")
}

func report(context.Context, mcp.CallToolRequest) (*mcp.CreateTaskResult, error) {
	return &mcp.CreateTaskResult{Content: []mcp.Content{mcp.NewTextContent("all is well")}}, nil
}

func now(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return mcp.NewToolResultText(time.Now().UTC().Format(time.RFC3339)), nil
}
