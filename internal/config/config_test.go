package config_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"freshet/internal/base/errs"
	"freshet/internal/config"
)

func TestDefaultIsValid(t *testing.T) {
	t.Parallel()
	if err := config.Default().Validate(); err != nil {
		t.Fatal(err)
	}
}

func TestEmptyFileIsDefault(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n", "# nothing\n", "{}\n"} {
		got, err := config.Parse([]byte(text))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if diff := cmp.Diff(config.Default(), got, cmpopts.IgnoreUnexported(config.Config{})); diff != "" {
			t.Errorf("%q (-default +got):\n%s", text, diff)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := config.Parse([]byte(`
dataDir: /var/lib/freshet
http: "off"
limits: {messageBody: 8MiB, resourceBody: 1048576, connections: 50}
timeouts: {drain: 1m30s}
pools:
- name: west
  members: [{name: w1}, {name: w2, location: us-west}]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.DataDir = "/var/lib/freshet"
	want.HTTP = config.Off
	want.Limits.MessageBody = 8 << 20
	want.Limits.ResourceBody = 1 << 20
	want.Limits.Connections = 50
	want.Timeouts.Drain = config.Duration(90 * time.Second)
	want.Pools = []config.Pool{{
		Name: "west", Namespace: "default", Type: "generic",
		Members: []config.PoolMember{
			{Name: "w1", Location: "w1", Engine: "pebble"},
			{Name: "w2", Location: "us-west", Engine: "pebble"},
		},
	}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(config.Config{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseRejects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"unknown key":        {"datadir: x", "datadir"},
		"unknown nested key": {"tls: {cert: x}", "cert"},
		"repeated key":       {"http: a:1\nhttp: b:1", "http"},
		"wrong type":         {"limits: {connections: many}", "connections"},
		"bare duration":      {"timeouts: {drain: 10}", "unit"},
		"bad duration":       {"timeouts: {drain: soon}", "soon"},
		"bad size":           {"limits: {messageBody: 5 apples}", "apples"},
		"size overflow":      {"limits: {messageBody: 9999999999999Gi}", "9999999999999Gi"},
		"two documents":      {"http: a:1\n---\nhttp: b:1", "one YAML document"},
		"not yaml":           {"\t{", "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Parse([]byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want one that mentions %q", err, c.want)
			}
			if got := errs.KindOf(err); got != errs.Invalid {
				t.Errorf("kind %v, want %v", got, errs.Invalid)
			}
		})
	}
}

func TestValidateNamesTheField(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*config.Config)
		field  string
	}{
		"no data directory":       {func(c *config.Config) { c.DataDir = "" }, "dataDir:"},
		"http on all interfaces":  {func(c *config.Config) { c.HTTP = ":8080" }, "http:"},
		"http on a name":          {func(c *config.Config) { c.HTTP = "example.org:80" }, "http:"},
		"http on another address": {func(c *config.Config) { c.HTTP = "10.0.0.1:80" }, "http:"},
		"not an address":          {func(c *config.Config) { c.Ops = "8081" }, "ops:"},
		"port out of range":       {func(c *config.Config) { c.HTTPS = "127.0.0.1:70000" }, "https:"},
		"same address twice":      {func(c *config.Config) { c.Ops = c.HTTP }, "ops:"},
		"nothing listens":         {func(c *config.Config) { c.HTTP, c.HTTPS = "off", "off" }, "https:"},
		"base URL with a path":    {func(c *config.Config) { c.BaseURL = "https://h/x" }, "baseURL:"},
		"base URL with password":  {func(c *config.Config) { c.BaseURL = "https://u:p@h" }, "baseURL:"},
		"issuer without scheme":   {func(c *config.Config) { c.IssuerURL = "example.org" }, "issuerURL:"},
		"domain":                  {func(c *config.Config) { c.Domain = "Not_DNS" }, "domain:"},
		"default cluster":         {func(c *config.Config) { c.DefaultCluster = "just-one" }, "defaultCluster:"},
		"half a certificate":      {func(c *config.Config) { c.TLS.CertFile = os.DevNull }, "tls:"},
		"missing certificate":     {func(c *config.Config) { c.TLS.CertFile = "/no/such/file" }, "tls.certFile:"},
		"certificate name": {
			func(c *config.Config) { c.TLS.Names = []string{"ok.example", "no good"} },
			"tls.names[1]:",
		},
		"etcd endpoint": {
			func(c *config.Config) { c.Etcd.Endpoints = []string{"host:2379"} },
			"etcd.endpoints[0]:",
		},
		"etcd prefix":          {func(c *config.Config) { c.Etcd.Prefix = "freshet/" }, "etcd.prefix:"},
		"etcd quota":           {func(c *config.Config) { c.Etcd.Quota = 5 }, "etcd.quota:"},
		"shared etcd, own key": {external, "encryptionKey.file:"},
		"shared etcd, pebble":  {external, "pools[0].members[0].engine:"},
		"missing key": {
			func(c *config.Config) { c.EncryptionKey.File = "/no/such/file" },
			"encryptionKey.file:",
		},
		"no pools":   {func(c *config.Config) { c.Pools = nil }, "pools:"},
		"no members": {func(c *config.Config) { c.Pools[0].Members = nil }, "pools[0].members:"},
		"engine": {
			func(c *config.Config) { c.Pools[0].Members[0].Engine = "paper" },
			"pools[0].members[0].engine:",
		},
		"pool twice":             {func(c *config.Config) { c.Pools = append(c.Pools, c.Pools[0]) }, "pools[1].name:"},
		"replicas without a URL": {external, "baseURL:"},
		"pool type":              {func(c *config.Config) { c.Pools[0].Type = "moon" }, "pools[0].type:"},
		"no connections":         {func(c *config.Config) { c.Limits.Connections = 0 }, "limits.connections:"},
		"huge header":            {func(c *config.Config) { c.Limits.HeaderSize = 1 << 40 }, "limits.headerSize:"},
		"token for a month": {
			func(c *config.Config) { c.Tokens.Lifetime = config.Duration(31 * 24 * time.Hour) },
			"tokens.lifetime:",
		},
		"drain for days": {
			func(c *config.Config) { c.Timeouts.Drain = config.Duration(48 * time.Hour) },
			"timeouts.drain:",
		},
		"admin organization": {func(c *config.Config) { c.Admin.Organization = "a.b" }, "admin.organization:"},
		"log level":          {func(c *config.Config) { c.Log.Level = "loud" }, "log.level:"},
		"access log":         {func(c *config.Config) { c.Log.Access = "some" }, "log.access:"},
		"access rate":        {func(c *config.Config) { c.Log.AccessRate = -1 }, "log.accessRate:"},
		"log format":         {func(c *config.Config) { c.Log.Format = "xml" }, "log.format:"},
		"audit path":         {func(c *config.Config) { c.Audit.Path = "" }, "audit.path:"},
		"origin": {
			func(c *config.Config) { c.CORS.Origins = []string{"*", "example.org"} },
			"cors.origins[1]:",
		},
		"contact without scheme": {
			func(c *config.Config) { c.SecurityContact = "security@example.com" },
			"securityContact:",
		},
		"contact of two lines": {
			func(c *config.Config) { c.SecurityContact = "mailto:a@example.com\nPolicy: x" },
			"securityContact:",
		},
		"contact over HTTP": {
			func(c *config.Config) { c.SecurityContact = "http://example.com/security" },
			"securityContact:",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config.Default()
			c.change(cfg)
			err := cfg.Validate()
			if err == nil || !strings.Contains(err.Error(), "\n  "+c.field+" ") {
				t.Errorf("error = %v, want one with a line for %s", err, c.field)
			}
		})
	}
}

func external(c *config.Config) { c.Etcd.Endpoints = []string{"https://etcd.example:2379"} }

func TestValidateAccepts(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*config.Config){
		"insecure http": func(c *config.Config) { c.HTTP, c.InsecureHTTP = ":8080", true },
		"ipv6 loopback": func(c *config.Config) { c.HTTP = "[::1]:8080" },
		"localhost":     func(c *config.Config) { c.HTTP = "localhost:8080" },
		"free ports": func(c *config.Config) {
			c.HTTP, c.HTTPS, c.Ops = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
		},
		"public https":          func(c *config.Config) { c.HTTPS = ":443" },
		"http only":             func(c *config.Config) { c.HTTPS, c.Ops = "off", "off" },
		"no default cluster":    func(c *config.Config) { c.DefaultCluster = "off" },
		"external, one replica": func(c *config.Config) { external(c); c.Etcd.SingleReplica = true },
		"base and issuer": func(c *config.Config) {
			c.BaseURL = "https://a.example"
			c.IssuerURL = "https://b.example:8443"
		},
		"certificate names": func(c *config.Config) { c.TLS.Names = []string{"*.example.org", "10.0.0.1", "::1"} },
		"every origin":      func(c *config.Config) { c.CORS.Origins = []string{"*"} },
		"no audit":          func(c *config.Config) { c.Audit.Path = "off" },
		"no drain":          func(c *config.Config) { c.Timeouts.Drain = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config.Default()
			change(cfg)
			if err := cfg.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPrintRoundTrip(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Etcd.Endpoints = []string{"https://etcd.example:2379"}
	cfg.EncryptionKey.File = "/etc/freshet/key"
	cfg.Limits.MessageBody = 1000
	var out bytes.Buffer
	if err := config.Print(&out, cfg); err != nil {
		t.Fatal(err)
	}
	got, err := config.Parse(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(cfg, got, cmpopts.IgnoreUnexported(config.Config{})); diff != "" {
		t.Errorf("(-printed +read):\n%s", diff)
	}
}

func TestPrintRedacts(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Etcd.Endpoints = []string{"https://root:hunter2@etcd.example:2379"}
	cfg.BaseURL = "https://u:hunter2@h"
	var out bytes.Buffer
	if err := config.Print(&out, cfg); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "hunter2") {
		t.Errorf("Print wrote a password:\n%s", out.String())
	}
	if cfg.Etcd.Endpoints[0] != "https://root:hunter2@etcd.example:2379" {
		t.Error("Print changed the configuration")
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "freshet.yaml")
	if err := os.WriteFile(path, []byte("domain: example.org\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(path)
	if err != nil || cfg.Domain != "example.org" {
		t.Fatalf("Load = %v, %v; want domain example.org", cfg, err)
	}
	if _, err := config.Load(path + ".missing"); errs.KindOf(err) != errs.NotFound {
		t.Errorf("missing file: kind of %v is %v, want %v", err, errs.KindOf(err), errs.NotFound)
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte("#"), 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(path); errs.KindOf(err) != errs.TooLarge {
		t.Errorf("huge file: kind of %v is %v, want %v", err, errs.KindOf(err), errs.TooLarge)
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg            config.Config
		public, issuer string
	}{
		"derived from http": {
			config.Config{HTTP: "127.0.0.1:8080", HTTPS: "127.0.0.1:8443"},
			"http://127.0.0.1:8080",
			"http://127.0.0.1:8080",
		},
		"derived from https": {
			config.Config{HTTP: "off", HTTPS: ":8443"},
			"https://localhost:8443",
			"https://localhost:8443",
		},
		"unspecified host": {config.Config{HTTP: "[::]:80"}, "http://localhost:80", "http://localhost:80"},
		"given":            {config.Config{BaseURL: "https://a", IssuerURL: "https://b"}, "https://a", "https://b"},
	} {
		if got := c.cfg.PublicURL(); got != c.public {
			t.Errorf("%s: public %s, want %s", name, got, c.public)
		}
		if got := c.cfg.Issuer(); got != c.issuer {
			t.Errorf("%s: issuer %s, want %s", name, got, c.issuer)
		}
	}
}

func TestSecureURL(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]config.Config{
		"https://127.0.0.1:8443": {HTTP: "127.0.0.1:8080", HTTPS: "127.0.0.1:8443"},
		"https://a.example":      {HTTPS: ":443", BaseURL: "https://a.example"},
		"https://localhost:443":  {HTTPS: ":443", BaseURL: "http://a.example"},
		"":                       {HTTP: ":80", HTTPS: config.Off},
	} {
		if got := cfg.SecureURL(); got != want {
			t.Errorf("SecureURL = %q, want %q", got, want)
		}
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.DataDir = "/d"
	if got, want := cfg.Path("tls", "ca.crt"), "/d/tls/ca.crt"; got != want {
		t.Errorf("Path = %q, want %q", got, want)
	}
	for given, want := range map[string]string{"audit.log": "/d/audit.log", "/var/log/a": "/var/log/a", "off": ""} {
		cfg.Audit.Path = given
		if got := cfg.AuditPath(); got != want {
			t.Errorf("%s: %q, want %q", given, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("")
	f.Add("limits: {messageBody: 8MiB}\npools: [{name: a, members: [{name: b}]}]\n")
	f.Add("timeouts: {drain: 1h}\netcd: {endpoints: ['https://a:1']}\n")
	f.Add("a: &a [*a, *a]\n")
	f.Fuzz(func(t *testing.T, text string) {
		cfg, err := config.Parse([]byte(text))
		if err != nil {
			return
		}
		_ = cfg.Validate() // must not panic for any parsed configuration
		var out bytes.Buffer
		if err := config.Print(&out, cfg); err != nil {
			t.Fatal(err)
		}
	})
}

// TestDocumentedDefaults checks that the reference page contains the output of `freshet
// config print`, every setting and every environment variable.
func TestDocumentedDefaults(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	text, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("page has no YAML block")
	}
	got, err := config.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config.Default(), got, cmpopts.EquateEmpty(),
		cmpopts.IgnoreUnexported(config.Config{})); diff != "" {
		t.Errorf("(-default +documented):\n%s", diff)
	}
	var printed bytes.Buffer
	if err := config.Print(&printed, config.Default()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(printed.String(), text, cmpopts.IgnoreUnexported(config.Config{})); diff != "" {
		t.Errorf("page differs from the output of `freshet config print` (-printed +page):\n%s", diff)
	}
	for _, s := range config.Settings() {
		row := "| `" + s[0] + "` | `" + s[1] + "` |"
		if !strings.Contains(string(page), row) {
			t.Errorf("page has no row %s", row)
		}
		if !strings.Contains(text, s[0][strings.LastIndex(s[0], ".")+1:]+":") {
			t.Errorf("setting %s is not in reference.yaml; add it with a comment", s[0])
		}
	}
}

func TestPublicAddressHasAPort(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ http, https, base, want string }{
		{"127.0.0.1:8080", "off", "", "127.0.0.1:8080"},
		{"off", "0.0.0.0:8443", "", "localhost:8443"},
		{"off", ":443", "https://stream.example", "stream.example:443"},
		{"off", ":443", "https://stream.example:8443", "stream.example:8443"},
		{"off", ":443", "http://[::1]", "[::1]:80"},
	} {
		cfg := config.Default()
		cfg.HTTP, cfg.HTTPS, cfg.BaseURL = c.http, c.https, c.base
		if got := cfg.PublicAddress(); got != c.want {
			t.Errorf("http %s, https %s, baseURL %q: got %s, want %s", c.http, c.https, c.base, got, c.want)
		}
	}
}

// TestReserve checks the default of limits.diskReserve for disks of several sizes.
func TestReserve(t *testing.T) {
	t.Parallel()
	const mib, gib = int64(1) << 20, int64(1) << 30
	for disk, want := range map[int64]int64{
		0: 0, 100 * mib: 25 * mib, gib: 64 * mib, 10 * gib: gib / 2,
		1000 * gib: gib,
	} {
		if got := config.DiskReserve(disk, 0); got != want {
			t.Errorf("disk of %d bytes: got %d, want %d", disk, got, want)
		}
	}
	if got := config.DiskReserve(gib, 7); got != 7 {
		t.Errorf("got %d, want the configured 7", got)
	}
}
