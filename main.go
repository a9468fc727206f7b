// Command mcptasks watches long-running MCP tasks.
package main

func main() {}
