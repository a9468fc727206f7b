package cli

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"mcptasks/ui/safe"
)

// tapCmd stands between an agent and its server. What it prints and how it ends
// is the server's doing; only what keeps the server from being started is said
// here.
func (r *run) tapCmd() *cobra.Command {
	var o TapOptions
	var in TapInstallOptions
	var install, uninstall bool
	c := &cobra.Command{
		Use: "tap -- COMMAND ARG… | tap --listen ADDR URL", Short: "Pass an agent's session through and show its tasks",
		Example: "  mcptasks tap -- npx -y @modelcontextprotocol/server-everything stdio\n" +
			"  mcptasks tap --listen 127.0.0.1:7070 https://ci.example/mcp\n" +
			"  mcptasks tap --install .mcp.json ci --write",
		RunE: func(cmd *cobra.Command, a []string) error {
			if install || uninstall {
				if len(a) != 2 || install && uninstall {
					return usagef("it is: mcptasks tap --install FILE SERVER, or --uninstall FILE SERVER")
				}
				in.File, in.Server, in.Uninstall = a[0], a[1], uninstall
				return r.deps.TapInstall(r.env, in)
			}
			switch dash := cmd.ArgsLenAtDash(); {
			case o.Listen != "" && len(a) == 1 && dash < 0:
				o.URL = a[0]
			case o.Listen == "" && dash == 0 && len(a) > 0:
				o.Command = a
			default:
				return usagef("it is: mcptasks tap -- COMMAND ARG…, or mcptasks tap --listen ADDR URL")
			}
			r.exact = true
			if os.Getenv("GOGC") == "" {
				// Collecting garbage is most of what ever delays a message (see
				// BenchmarkHTTPRoundTrip); a tap keeps little, so rarely is cheap.
				debug.SetGCPercent(400)
			}
			code, err := r.deps.Tap(cmd.Context(), r.process, r.g, o)
			r.code = code
			if err != nil && code != 0 {
				fmt.Fprintln(r.env.Stderr, "mcptasks tap: "+safe.Line(err.Error()))
				return nil
			}
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&o.Listen, "listen", "", "stand in front of an HTTP server at this `ADDRESS`")
	f.BoolVar(&o.Passive, "passive", false, "never send anything of our own")
	f.BoolVar(&o.Answer, "answer", false, "declare elicitation for an agent that does not, and answer in mcptasks")
	f.StringVar(&o.Name, "name", "", "the server's `NAME` in the list")
	f.BoolVar(&o.Public, "public", false, "with --listen: allow an address that is not loopback")
	f.BoolVar(&install, "install", false, "print the changed entry of a client's file")
	f.BoolVar(&uninstall, "uninstall", false, "print the entry as it was before")
	f.BoolVar(&in.Write, "write", false, "with --install and --uninstall: write the file, keeping a copy")
	return c
}
