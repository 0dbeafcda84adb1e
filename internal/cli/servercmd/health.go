package servercmd

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/contexts"
	"freshet/internal/cli/output"
	"freshet/internal/config"
)

func newHealth() *cobra.Command {
	var o struct {
		server, caFile string
		timeout        time.Duration
		verbose        bool
		format         output.Format
	}
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Check whether a server is ready",
		Long: `Check whether a server is ready. The exit code is 0 if every API works, 1 if the server
is not ready or cannot be reached, and 6 if it does not respond in time. Use the command
for container health checks.`,
		Example: `  # the server on this machine
  freshet health

  # another server, with its own certificate authority
  freshet health --server $SERVER --ca-file freshet-data/tls/ca.crt

  # show every check
  freshet health --verbose

  # as JSON, for scripts
  freshet health -o json`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("server") {
				o.server = "http://" + config.Default().HTTP
				if local, err := contexts.Local(dataDirectory()); err == nil {
					o.server, o.caFile = local.Server, cmp.Or(o.caFile, generatedAuthority(dataDirectory()))
				}
			}
			base, err := url.Parse(o.server)
			if err != nil || base.Host == "" {
				return command.Usagef(cmd, "--server takes a URL, not %q", o.server)
			}
			client, err := httpClient(o.caFile)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), o.timeout)
			defer cancel()
			h, err := checkHealth(ctx, client, base, o.verbose || o.format.IsData())
			if err != nil {
				return err
			}
			return h.print(cmd.OutOrStdout(), o.format, o.verbose)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.server, "server", "",
		"base `URL` of the server (default: the address of the server in ./freshet-data, or http://127.0.0.1:8080)")
	f.StringVar(&o.caFile, "ca-file", "", "certificate authority to trust in addition to the system's (PEM `file`)")
	f.DurationVar(&o.timeout, "timeout", 5*time.Second, "how long to wait for a response")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "show every check")
	output.AddFlag(f, &o.format, output.FormatText, output.FormatJSON, output.FormatYAML)
	return cmd
}

// maxResponse limits a response in bytes, because the server may not be a Freshet server.
const maxResponse = 1 << 20

// health is the state of a server that is ready, in the form of -o json.
type health struct {
	Server string        `json:"server"`
	Ready  bool          `json:"ready"`
	Checks []healthCheck `json:"checks"`

	text string // the server's list of checks
}

type healthCheck struct {
	Name   string `json:"name"`
	Passed bool   `json:"passed"`
}

func (h *health) print(w io.Writer, format output.Format, verbose bool) error {
	if format.IsData() {
		for line := range strings.Lines(h.text) { // "[+]etcd ok"
			name, ok := strings.CutPrefix(strings.TrimSpace(line), "[+]")
			if name, _, found := strings.Cut(name, " "); ok && found {
				h.Checks = append(h.Checks, healthCheck{name, true})
			}
		}
		return output.Value(w, format, h)
	}
	text := "ready"
	if verbose {
		text = h.text
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// checkHealth returns the state of a server, or an error if it is not ready.
func checkHealth(ctx context.Context, client *http.Client, base *url.URL, verbose bool) (*health, error) {
	target := base.JoinPath("readyz")
	if verbose {
		target.RawQuery = "verbose"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, errs.Newf(errs.Unavailable, "%w", err)
	}
	defer func() { _ = response.Body.Close() }() // only read
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return nil, errs.Newf(errs.Unavailable, "reading the response: %w", err)
	}
	text := strings.TrimSpace(string(body))
	if response.StatusCode != http.StatusOK {
		return nil, errs.Newf(errs.Unavailable, "server %s is not ready: %s\n%s", base, response.Status, text)
	}
	return &health{Server: base.String(), Ready: true, Checks: []healthCheck{}, text: text}, nil
}

func httpClient(caFile string) (*http.Client, error) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, errs.Newf(errs.Invalid, "reading the certificate authority: %w", err)
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, errs.Newf(errs.Invalid, "file %s has no certificate", caFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: transport}, nil
}
