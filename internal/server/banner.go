package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"freshet/internal/config"
	"freshet/internal/version"
)

// announce tells that the server is ready: a record of the log where machines read
// that, else a page for the person who started it.
func (s *server) announce(out io.Writer, took time.Duration, lacks error) {
	cfg := s.cfg
	if cfg.Log.Format != "json" {
		printBanner(out, cfg, s.stream.taken, s.link, took, lacks)
		return
	}
	attrs := []slog.Attr{
		slog.String("version", version.Get().Version), slog.String("took", took.Round(time.Millisecond).String()),
		slog.String("http", cfg.HTTP), slog.String("https", cfg.HTTPS), slog.String("ops", cfg.Ops),
		slog.String("url", cfg.PublicURL()), slog.String("data_dir", cfg.DataDir),
	}
	level, text := slog.LevelInfo, "Freshet is ready"
	if lacks != nil {
		level, text = slog.LevelWarn, "Freshet is running, but not all of it works; it keeps trying"
		attrs = append(attrs, slog.String("error", lacks.Error()))
	}
	s.log.LogAttrs(context.Background(), level, text, attrs...)
}

// printBanner says that the server is ready, or what it still lacks, and what to do
// next.
func printBanner(out io.Writer, cfg *config.Config, taken []string, link string, took time.Duration, lacks error) {
	var b strings.Builder
	if lacks == nil {
		fmt.Fprintf(&b, "\nFreshet is ready (%.1fs).\n\n", took.Seconds())
	} else {
		fmt.Fprintf(&b, "\nFreshet is running, but not all of it works; it keeps trying:\n  %v\n\n", lacks)
	}
	if cfg.HTTP != config.Off {
		fmt.Fprintf(&b, "  HTTP         http://%s\n", cfg.HTTP)
	}
	if cfg.HTTPS != config.Off {
		fmt.Fprintf(&b, "  HTTPS        https://%s\n", cfg.HTTPS)
		if cfg.TLS.CertFile == "" {
			fmt.Fprintf(&b, "  CA           %s\n", path(cfg, "tls", "ca.crt"))
		}
	}
	for _, l := range []struct{ name, address string }{{"Stream", cfg.Stream.Plain}, {"Stream, TLS", cfg.Stream.TLS}} {
		if l.address != config.Off {
			fmt.Fprintf(&b, "  %-12s %s\n", l.name, l.address)
		}
	}
	for _, why := range taken {
		fmt.Fprintf(&b, "  Stream       off: %s\n", why)
	}
	if cfg.Ops != config.Off {
		fmt.Fprintf(&b, "  Metrics      http://%s/metrics\n", cfg.Ops)
	}
	if link != "" {
		fmt.Fprintf(&b, "  Sign in      %s\n               (once, within an hour; freshet admin link makes another)\n", link)
	} else {
		fmt.Fprintf(&b, "  Console      %s/console/ (freshet admin link makes a link to sign in with)\n", cfg.PublicURL())
	}
	fmt.Fprintf(&b, "  Credentials  %s\n", path(cfg, "admin.json"))
	fmt.Fprintf(&b, "  Token        %s\n", path(cfg, "admin.token"))
	fmt.Fprintf(&b, "  Kubeconfig   %s\n", path(cfg, "kubeconfig"))
	base := cfg.PublicURL()
	curl := "curl"
	if strings.HasPrefix(base, "https:") && cfg.TLS.CertFile == "" {
		curl += " --cacert " + path(cfg, "tls", "ca.crt")
	}
	auth := `-H "Authorization: Bearer $(cat ` + path(cfg, "admin.token") + `)"`
	fmt.Fprintf(&b, "\nTry it, in another terminal:\n\n")
	fmt.Fprintf(&b, "  %s %s %s/apis/cloud.vendor.io/v1alpha1/namespaces/%s/messagingclusters\n\n", curl, auth, base, cfg.Admin.Organization)
	fmt.Fprintf(&b, "  %s -X PUT %s %s/admin/v2/persistent/public/default/hello/subscription/me\n", curl, auth, base)
	fmt.Fprintf(&b, "  %s %s -H 'Content-Type: application/octet-stream' --data 'hello, stream' %s/admin/rest/topics/v1/public/default/hello/message\n", curl, auth, base)
	fmt.Fprintf(&b, "  %s -X POST %s %s/admin/rest/topics/v1/public/default/hello/me/message\n\n", curl, auth, base)
	fmt.Fprintf(&b, "  %s %s %s/subjects\n", curl, auth, base)
	if address := cfg.Stream.Plain; address != config.Off {
		fmt.Fprintf(&b, "\n  kcat -b %s -X security.protocol=SASL_PLAINTEXT -X sasl.mechanism=PLAIN -X sasl.username=user -X sasl.password=\"token:$(cat %s)\" -L\n",
			address, path(cfg, "admin.token"))
	}
	fmt.Fprintf(&b, "\n  kubectl --kubeconfig %s get all\n\nStop it with Ctrl-C.\n", path(cfg, "kubeconfig"))
	_, _ = io.WriteString(out, b.String()) // nobody may be looking
}

func path(cfg *config.Config, elem ...string) string {
	return filepath.Join(append([]string{cfg.DataDir}, elem...)...)
}
