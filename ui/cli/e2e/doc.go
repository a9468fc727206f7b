// Package e2e tries the built program as a person and a script do: by its
// command line, against servers that nobody here wrote and against its own
// demo servers. It holds tests only, behind the build tag e2e,
// until all of its peers pass in one run: go test -tags e2e ./ui/cli/e2e.
package e2e
