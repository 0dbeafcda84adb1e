package banner

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"freshet/internal/config"
)

// TestBanner checks the banner, and that its lines have at most 80 columns. test/e2e/howto
// runs its commands.
func TestBanner(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Kafka.Plain, cfg.Kafka.TLS = "127.0.0.1:9092", "127.0.0.1:9093"
	var out strings.Builder
	printBanner(&out, Options{Config: cfg, Program: "bin/freshet"}, 1200*time.Millisecond, nil)
	const want = `
Freshet is ready (1.2s).

  Console      http://127.0.0.1:8080/console/
  Docs         http://127.0.0.1:8080/docs/
  HTTP         http://127.0.0.1:8080
  HTTPS        https://127.0.0.1:8443 (CA: freshet-data/tls/ca.crt)
  Kafka        127.0.0.1:9092
  Kafka, TLS   127.0.0.1:9093
  Metrics      http://127.0.0.1:8081/metrics
  Credentials  admin.json, admin.token and kubeconfig in freshet-data

Try it, in another terminal, in this folder:

  bin/freshet topic create hello --if-not-exists
  bin/freshet produce hello 'hello, stream'
  bin/freshet consume hello --subscription me --create-from earliest
  bin/freshet admin link     # a link that signs you in to the console
  bin/freshet --help

  kubectl --kubeconfig freshet-data/kubeconfig get all
  kcat -b 127.0.0.1:9092 -L -X security.protocol=SASL_PLAINTEXT \
    -X sasl.mechanism=PLAIN -X sasl.username=user \
    -X sasl.password=token:$(cat freshet-data/admin.token)

Stop it with Ctrl-C.
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns, want at most 80: %s", n, line)
		}
	}
}

// TestBannerVariants checks the banner with another data directory and context, a
// sign-in link, and errors.
func TestBannerVariants(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.DataDir, cfg.HTTPS, cfg.Kafka.Plain, cfg.Kafka.TLS = "/srv/it's ours", config.Off, config.Off, config.Off
	var out strings.Builder
	printBanner(&out, Options{
		Config: cfg, PortsInUse: []string{"127.0.0.1:9092 is taken"}, Link: "http://127.0.0.1:8080/oauth/link?token=x",
		Program: CommandName("freshet"), Exports: []string{"FRESHET_CONTEXT=local"},
	}, time.Second, errors.New("cluster a is damaged"))
	for _, want := range []string{
		"not all of it works; it keeps trying:\n  cluster a is damaged\n",
		"  Console      http://127.0.0.1:8080/oauth/link?token=x\n",
		"  Kafka        off: 127.0.0.1:9092 is taken\n",
		"  export FRESHET_CONTEXT=local\n  export FRESHET_DATA_DIR='/srv/it'\\''s ours'\n  freshet topic create",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in\n%s", want, out.String())
		}
	}
	for _, not := range []string{"kubectl", "kcat", "HTTPS"} {
		if strings.Contains(out.String(), not) {
			t.Errorf("want no %q in\n%s", not, out.String())
		}
	}
}

// TestLinkIsForTerminalsOnly checks that the sign-in link is not written to a log or a pipe, but to a file
// that only its owner can read, whose path is printed, and that a later start removes the file.
func TestLinkIsForTerminalsOnly(t *testing.T) {
	t.Parallel()
	const link = "http://127.0.0.1:8080/oauth/link?token=secret"
	for _, format := range []string{"text", "json"} {
		cfg := config.Default()
		cfg.DataDir, cfg.Log.Format = t.TempDir(), format
		file := filepath.Join(cfg.DataDir, "sign-in.link")
		var out strings.Builder
		log := slog.New(slog.NewTextHandler(&out, nil))
		Announce(log, &out, Options{Config: cfg, Link: link, Program: "freshet"}, time.Second, nil)
		if strings.Contains(out.String(), "secret") || !strings.Contains(out.String(), file) {
			t.Errorf("%s: got %q, want the path of a file instead of the link", format, out.String())
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(file); err != nil || string(text) != link+"\n" || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: file has %q and mode %v, want the link and 0600; error %v", format, text, info.Mode(), err)
		}
		Announce(log, &out, Options{Config: cfg, Program: "freshet"}, time.Second, nil)
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: after the next start: got %v, want no file", format, err)
		}
	}
}
