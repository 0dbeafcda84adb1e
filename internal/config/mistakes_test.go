package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"freshet/internal/config"
)

// TestErrorListsAllMistakes checks that one error lists every mistake of a file, with the
// field, the line and the allowed values.
func TestErrorListsAllMistakes(t *testing.T) {
	t.Parallel()
	_, err := config.Parse([]byte(strings.TrimLeft(`
http: 8080
https: on
ops: false
insecureHTTP: maybe
dataDir: [a]
domain: 12
basURL: x
baseurl: x
limits: {connections: many, messageBody: 5 apples, tokenRate: fast}
timeouts:
  drain: 10
  idle: soon
tokens: 24h
cors:
  origins: "*"
tls: {names: [1]}
pools:
- nam: x
log:
  level: 7
  format: loud
`, "\n")))
	if err == nil {
		t.Fatal("Parse accepts the file, want an error")
	}
	for _, want := range []string{
		"http: 8080 must be host:port, or off; put a string that looks like another type in quotes (line 1)",
		`https: "on" must be host:port, or off (line 2)`,
		"ops: false must be host:port, or off; put a string that looks like another type in quotes (line 3)",
		`insecureHTTP: "maybe" must be true or false (line 4)`,
		"dataDir: must be a string, not a list (line 5)",
		"domain: 12 must be a DNS name",
		"basURL: unknown setting; known settings are dataDir, http,",
		"baseurl: unknown setting; did you mean baseURL? (line 8)",
		`limits.connections: "many" must be a whole number (line 9)`,
		`limits.messageBody: size "5 apples" is not valid; write bytes, or a number with Ki, Mi or Gi (line 9)`,
		`limits.tokenRate: "fast" must be a number (line 9)`,
		"timeouts.drain: duration 10 must have a unit, such as 10s or 24h (line 11)",
		`timeouts.idle: duration "soon" is not valid; write it as 90s or 24h (line 12)`,
		"tokens: must be a mapping with the settings lifetime, keyRotation (line 13)",
		"cors.origins: must be a list, as in [a, b] (line 15)",
		"tls.names[0]: 1 must be a string; put a string that looks like another type in quotes (line 16)",
		"pools[0].nam: unknown setting; known settings are name, namespace, type, members (line 18)",
		"log.level: 7 must be debug, info, warn or error",
		`log.format: "loud" must be text or json (line 21)`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not contain %q:\n%v", want, err)
		}
	}
}

// TestValidateNamesTheLine checks that errors of Validate contain the line or the
// environment variable of a value.
func TestValidateNamesTheLine(t *testing.T) {
	t.Parallel()
	cfg, err := config.Parse([]byte("domain: example.org\nlimits:\n  connections: 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.ApplyEnvironment([]string{"FRESHET_LOG_LEVEL=loud"}); err != nil {
		t.Fatal(err)
	}
	err = cfg.Validate()
	for _, want := range []string{
		"limits.connections: 1 is not between 10 and 10000000 (line 3)",
		`log.level: "loud" must be debug, info, warn or error (FRESHET_LOG_LEVEL)`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want one that contains %q", err, want)
		}
	}
}

func TestOffNeedsNoQuotes(t *testing.T) {
	t.Parallel()
	cfg, err := config.Parse([]byte("http: off\nops: Off\ninsecureHTTP: on\naudit: {path: off}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if cfg.HTTP != config.Off || cfg.Audit.Path != config.Off || !cfg.InsecureHTTP {
		t.Errorf("got http %q, audit.path %q, insecureHTTP %v, want off, off, true", cfg.HTTP, cfg.Audit.Path,
			cfg.InsecureHTTP)
	}
	if err := cfg.Validate(); err == nil ||
		!strings.Contains(err.Error(), `ops: "Off" must be host:port, or off (line 2)`) {
		t.Errorf("Validate = %v, want an error about Off", err)
	}
}

// TestEverySettingByEnvironment overrides settings of every type with environment
// variables, and checks the errors for variables that are not valid.
func TestEverySettingByEnvironment(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	err := cfg.ApplyEnvironment([]string{
		"FRESHET_HTTP=off", "FRESHET_BASE_URL=https://stream.example", "FRESHET_INSECURE_HTTP=true",
		"FRESHET_LIMITS_MESSAGE_BODY=8Mi", "FRESHET_LIMITS_CONNECTIONS=50", "FRESHET_LIMITS_TOKEN_RATE=2.5",
		"FRESHET_TIMEOUTS_DRAIN=90s", "FRESHET_CORS_ORIGINS=https://a.example, https://b.example",
		"FRESHET_ETCD_CA_FILE=/ca",
		"FRESHET_POOLS=[{name: p, members: [{name: m}]}]", "FRESHET_TLS_NAMES=",
		"FRESHET_SERVICE_HOST=10.0.0.1", "PATH=/bin",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.HTTP, want.BaseURL, want.InsecureHTTP = config.Off, "https://stream.example", true
	want.Limits.MessageBody, want.Limits.Connections, want.Limits.TokenRate = 8<<20, 50, 2.5
	want.Timeouts.Drain = config.Duration(90e9)
	want.CORS.Origins, want.Etcd.CAFile = []string{"https://a.example", "https://b.example"}, "/ca"
	want.Pools = []config.Pool{{
		Name: "p", Namespace: "default", Type: "generic",
		Members: []config.PoolMember{{Name: "m", Location: "m", Engine: config.EnginePebble}},
	}}
	if diff := cmp.Diff(want, cfg, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(config.Config{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	err = config.Default().ApplyEnvironment([]string{
		"FRESHET_LIMITS_CONECTIONS=1", "FRESHET_TIMEOUTS_DRAIN=10",
		"FRESHET_POOLS={",
	})
	for _, want := range []string{
		"FRESHET_LIMITS_CONECTIONS: unknown setting", "timeouts.drain: duration 10 must have a unit",
		"(FRESHET_TIMEOUTS_DRAIN)", "(FRESHET_POOLS)",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want one that contains %q", err, want)
		}
	}
}
