// Package banner reports to the person who started the server, or to the log, that the server
// is ready: its addresses, and commands to try. Hold.mu is its only lock.
package banner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"

	"freshet/internal/base/atomicfile"
	"freshet/internal/base/version"
	"freshet/internal/config"
)

// Announce reports that the server is ready: as a log record if the log format is JSON,
// otherwise as a banner for the person who started it. took is the duration of the start,
// lacks is what does not work yet, or nil.
func Announce(log *slog.Logger, out io.Writer, opts Options, took time.Duration, lacks error) {
	cfg := opts.Config
	if err := opts.hideLink(out); err != nil {
		log.Warn("writing the sign-in link failed; create another with freshet admin link", slog.Any("error", err))
	}
	if cfg.Log.Format != "json" {
		printBanner(out, opts, took, lacks)
		return
	}
	attrs := []slog.Attr{
		slog.String("version", version.Get().Version), slog.String("took", took.Round(time.Millisecond).String()),
		slog.String("http", cfg.HTTP), slog.String("https", cfg.HTTPS), slog.String("ops", cfg.Ops),
		slog.String("url", cfg.PublicURL()), slog.String("data_dir", cfg.DataDir),
	}
	if opts.linkFile != "" {
		attrs = append(attrs, slog.String("sign_in_link_file", opts.linkFile))
	}
	level, text := slog.LevelInfo, "Freshet is ready"
	if lacks != nil {
		level, text = slog.LevelWarn, "Freshet is running, but not all of it works; it keeps trying"
		attrs = append(attrs, slog.Any("error", lacks))
	}
	log.LogAttrs(context.Background(), level, text, attrs...)
}

// printBanner writes the banner: that the server is ready or what does not work yet, the
// addresses, and commands to try.
func printBanner(out io.Writer, s Options, took time.Duration, lacks error) {
	var b strings.Builder
	if lacks == nil {
		fmt.Fprintf(&b, "\nFreshet is ready (%.1fs).\n\n", took.Seconds())
	} else {
		fmt.Fprintf(&b, "\nFreshet is running, but not all of it works; it keeps trying:\n  %v\n\n", lacks)
	}
	s.writeAddresses(&b)
	fmt.Fprintf(&b, "\nTry it, in another terminal, in this folder:\n\n")
	s.writeCommands(&b)
	fmt.Fprintf(&b, "\nStop it with Ctrl-C.\n")
	_, _ = io.WriteString(out, b.String()) // an error does not matter
}

// Options are the contents of the banner.
type Options struct {
	Config     *config.Config // with the addresses of the open ports
	PortsInUse []string       // why the Kafka protocol is off
	Link       string         // one-time sign-in link of the administrator, or ""
	// Program is how the user started the program. Exports are environment variables that
	// commands need to find this server.
	Program string
	Exports []string

	linkFile string // the file with the link, if it is not printed
}

// linkName is the file in the data directory with the sign-in link of the first start.
const linkName = "sign-in.link"

// hideLink writes the link to a file that only the owner of the process can read, unless out is a terminal:
// logs and the output of a container are read by others. A later start removes the file, because the link
// has expired.
func (s *Options) hideLink(out io.Writer) error {
	file := path(s.Config, linkName)
	terminal := s.Config.Log.Format != "json" && isTerminal(out)
	if s.Link == "" || terminal {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	link := s.Link
	s.Link = ""
	if err := atomicfile.Replace(file, []byte(link+"\n")); err != nil {
		return err
	}
	s.linkFile = file
	return nil
}

// isTerminal reports whether out is a terminal.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) //nolint:gosec // a file descriptor is small
}

// writeAddresses writes the addresses and files.
func (s Options) writeAddresses(b *strings.Builder) {
	cfg := s.Config
	switch {
	case s.Link != "":
		fmt.Fprintf(b, "  Console      %s\n               (this link signs you in, once, within an hour)\n", s.Link)
	case s.linkFile != "":
		fmt.Fprintf(b, "  Console      %s/console/\n               (a link that signs you in, once, within an hour, "+
			"is in\n               %s)\n", cfg.PublicURL(), s.linkFile)
	default:
		fmt.Fprintf(b, "  Console      %s/console/\n", cfg.PublicURL())
	}
	fmt.Fprintf(b, "  Docs         %s/docs/\n", cfg.PublicURL())
	if cfg.HTTP != config.Off {
		fmt.Fprintf(b, "  HTTP         http://%s\n", cfg.HTTP)
	}
	if cfg.HTTPS != config.Off {
		fmt.Fprintf(b, "  HTTPS        https://%s", cfg.HTTPS)
		if cfg.TLS.CertFile == "" {
			fmt.Fprintf(b, " (CA: %s)", path(cfg, "tls", "ca.crt"))
		}
		b.WriteByte('\n')
	}
	for _, l := range []struct{ name, address string }{{"Kafka", cfg.Kafka.Plain}, {"Kafka, TLS", cfg.Kafka.TLS}} {
		if l.address != config.Off {
			fmt.Fprintf(b, "  %-12s %s\n", l.name, l.address)
		}
	}
	for _, why := range s.PortsInUse {
		fmt.Fprintf(b, "  Kafka        off: %s\n", why)
	}
	if cfg.Ops != config.Off {
		fmt.Fprintf(b, "  Metrics      http://%s/metrics\n", cfg.Ops)
	}
	fmt.Fprintf(b, "  Credentials  admin.json, admin.token and kubeconfig in %s\n", cfg.DataDir)
}

// writeCommands writes commands to copy.
func (s Options) writeCommands(b *strings.Builder) {
	for _, line := range s.Exports {
		fmt.Fprintf(b, "  export %s\n", line)
	}
	if s.Config.DataDir != config.Default().DataDir {
		fmt.Fprintf(b, "  export FRESHET_DATA_DIR=%s\n", shellQuote(s.Config.DataDir))
	}
	program := shellQuote(s.Program)
	fmt.Fprintf(b, "  %s topic create hello --if-not-exists\n", program)
	fmt.Fprintf(b, "  %s produce hello 'hello, stream'\n", program)
	fmt.Fprintf(b, "  %s consume hello --subscription me --create-from earliest\n", program)
	fmt.Fprintf(b, "  %s admin link     # a link that signs you in to the console\n", program)
	fmt.Fprintf(b, "  %s --help\n\n", program)
	if s.Config.HTTPS != config.Off {
		fmt.Fprintf(b, "  kubectl --kubeconfig %s get all\n", shellQuote(path(s.Config, "kubeconfig")))
	}
	if address := s.Config.Kafka.Plain; address != config.Off {
		fmt.Fprintf(b, "  kcat -b %s -L -X security.protocol=SASL_PLAINTEXT \\\n", address)
		fmt.Fprintf(b, "    -X sasl.mechanism=PLAIN -X sasl.username=user \\\n")
		fmt.Fprintf(b, "    -X sasl.password=token:$(cat %s)\n", shellQuote(path(s.Config, "admin.token")))
	}
}

// shellQuote returns a word quoted for a shell.
func shellQuote(word string) string {
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// CommandName returns the command with which users can run the program again: its path if it was
// started with one, otherwise its name.
func CommandName(arg string) string {
	if strings.ContainsRune(arg, filepath.Separator) {
		return arg
	}
	return "freshet"
}

func path(cfg *config.Config, elem ...string) string {
	return filepath.Join(append([]string{cfg.DataDir}, elem...)...)
}
