package servercmd

import (
	"cmp"
	"os"

	"github.com/spf13/cobra"

	"freshet/internal/cli/command"
	"freshet/internal/cli/contexts"
	"freshet/internal/config"
)

func newServe(server Server) *cobra.Command {
	var file string
	flags := config.Default()
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: `Run the server: the resource API with embedded etcd, the data plane, and all APIs on one
HTTP and one HTTPS address. All data is stored in the data directory; the first start
creates it and prints its most important files and addresses.

Flags take precedence over environment variables (FRESHET_…, one for every setting), these
over the configuration file, and the file over the defaults. An interrupt stops the
server gracefully, a second one immediately. SIGHUP reopens the log and audit files and
reloads certificates and configuration.`,
		Example: `  # with data in ./freshet-data
  freshet serve

  # another directory and other ports
  freshet serve --data-dir /var/lib/freshet --http 127.0.0.1:9080 --https 127.0.0.1:9443

  # production: TLS on all interfaces, settings from a file
  freshet serve --config /etc/freshet.yaml --http off --https :443`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			read := func() (*config.Config, error) {
				cfg, err := loadConfig(file)
				if err != nil {
					return nil, err
				}
				applyFlags(cmd, cfg, flags)
				return cfg, cfg.Validate()
			}
			cfg, err := read()
			if err != nil {
				return err
			}
			return server.Run(cmd.Context(), cfg, read, cmd.OutOrStdout(), shellExports())
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "config", "", "configuration `file` (YAML)")
	f.StringVar(&flags.DataDir, "data-dir", flags.DataDir, "data `directory`")
	f.StringVar(&flags.HTTP, "http", flags.HTTP, "HTTP listen `address`, or off")
	f.StringVar(&flags.HTTPS, "https", flags.HTTPS, "HTTPS listen `address`, or off")
	f.StringVar(&flags.Kafka.Plain, "stream", flags.Kafka.Plain,
		"listen `address` of the Kafka protocol without TLS, auto or off")
	f.StringVar(&flags.Kafka.TLS, "stream-tls", flags.Kafka.TLS,
		"listen `address` of the Kafka protocol with TLS, auto or off")
	f.StringVar(&flags.Ops, "ops", flags.Ops, "listen `address` of metrics and profiles, or off")
	f.BoolVar(&flags.InsecureHTTP, "insecure-http", false, "allow HTTP on an address that other machines can reach")
	f.StringVar(&flags.Log.Level, "log-level", flags.Log.Level, "log `level`: debug, info, warn or error")
	f.StringVar(&flags.Log.Format, "log-format", flags.Log.Format, "log `format`: text or json")
	return cmd
}

// applyFlags copies the flags that are set on the command line.
func applyFlags(cmd *cobra.Command, cfg, flags *config.Config) {
	for name, set := range map[string]func(){
		"data-dir":      func() { cfg.DataDir = flags.DataDir },
		"http":          func() { cfg.HTTP = flags.HTTP },
		"https":         func() { cfg.HTTPS = flags.HTTPS },
		"ops":           func() { cfg.Ops = flags.Ops },
		"stream":        func() { cfg.Kafka.Plain = flags.Kafka.Plain },
		"stream-tls":    func() { cfg.Kafka.TLS = flags.Kafka.TLS },
		"insecure-http": func() { cfg.InsecureHTTP = flags.InsecureHTTP },
		"log-level":     func() { cfg.Log.Level = flags.Log.Level },
		"log-format":    func() { cfg.Log.Format = flags.Log.Format },
	} {
		if cmd.Flags().Changed(name) {
			set()
		}
	}
}

// shellExports returns the variables that the operator must set so that commands use this server
// instead of the one in the current context.
func shellExports() []string {
	file, err := contexts.Load(contexts.Path(os.Getenv))
	if err != nil || file.Current == "" || file.Current == contexts.LocalName {
		return nil // every command reports an invalid context file
	}
	return []string{"FRESHET_CONTEXT=" + contexts.LocalName}
}

// dataDirectory returns the default data directory of a server on this machine.
func dataDirectory() string {
	return cmp.Or(os.Getenv("FRESHET_DATA_DIR"), config.Default().DataDir)
}

// loadConfig reads the configuration file, if path is not empty, and applies the
// environment variables.
func loadConfig(path string) (cfg *config.Config, err error) {
	cfg = config.Default()
	if path != "" {
		if cfg, err = config.Load(path); err != nil {
			return nil, err
		}
	}
	return cfg, cfg.ApplyEnvironment(os.Environ())
}
