// Package config reads the program's own config.toml and the files in which
// other MCP clients keep their servers. Those are only ever read. One bad entry
// disables that entry and says why; the rest goes on.
//
// It imports the standard library and parsers (TOML, JSON with comments,
// dotenv, shell words). It connects to nothing and starts nothing; what it
// reads of the environment is handed to it in Env.
package config
