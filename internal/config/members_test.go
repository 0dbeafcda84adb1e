package config_test

import (
	"strings"
	"testing"

	"freshet/internal/config"
)

// ensembleConfig is the configuration of one member of an ensemble.
const ensembleConfig = `
baseURL: https://freshet.example.com
members:
  self: b
  list:
  - {name: a, internal: "10.0.0.1:7443", etcd: "10.0.0.1:7380", log: "10.0.0.1:7422"}
  - {name: b, internal: "b.example.com:7443", etcd: "b.example.com:7380", log: "b.example.com:7422"}
  - {name: c, internal: "[fd00::3]:7443", etcd: "[fd00::3]:7380", log: "[fd00::3]:7422"}
`

func TestMembers(t *testing.T) {
	t.Parallel()
	cfg, err := config.Parse([]byte(ensembleConfig))
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	own, index := cfg.Members.Own()
	if !cfg.Members.Enabled() || index != 1 || own.Log != "b.example.com:7422" {
		t.Errorf("got %+v at %d, want member b at 1", own, index)
	}
	if got, want := cfg.BundleDir(), cfg.Path("members"); got != want {
		t.Errorf("BundleDir = %s, want %s", got, want)
	}
	if alone := config.Default(); alone.Members.Enabled() {
		t.Error("default configuration has members, want none")
	}
	if err := cfg.ApplyEnvironment([]string{"FRESHET_MEMBERS_SELF=c"}); err != nil || cfg.Members.Self != "c" {
		t.Errorf("FRESHET_MEMBERS_SELF: got %q and %v, want c", cfg.Members.Self, err)
	}
}

func TestMembersWithExternalEtcd(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer(
		`etcd: "10.0.0.1:7380", `, "", `etcd: "b.example.com:7380", `, "", `etcd: "[fd00::3]:7380", `, "",
	).Replace(ensembleConfig) + "etcd: {endpoints: [\"https://etcd.example.com:2379\"]}\n"
	cfg, err := config.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.Validate(); err != nil {
		t.Errorf("got %v, want members with an external etcd to be valid", err)
	}
}

func TestMembersWithExternalNATS(t *testing.T) {
	t.Parallel()
	without := strings.NewReplacer(
		`, log: "10.0.0.1:7422"`, "", `, log: "b.example.com:7422"`, "", `, log: "[fd00::3]:7422"`, "",
	).Replace(ensembleConfig)
	const servers = "nats: {urls: [\"tls://nats.example.com:4222\"], monitoring: [\"http://nats.example.com:8222\"]}\n"
	const secret = "nats: {urls: [\"nats://me:secret@nats.example.com\"]}\n"
	const badMonitoring = "nats: {urls: [\"nats://nats.example.com\"], monitoring: [\"nats.example.com:8222\"]}\n"
	for text, want := range map[string]string{
		without + servers:        "",
		ensembleConfig + servers: "members.list[0].log: must be left out when nats.urls are set",
		servers:                  "nats.urls: are only for the members of an ensemble",
		without + secret:         "nats.urls[0]: must be nats://host:port",
		without + badMonitoring:  "nats.monitoring[0]: must be http(s)",
	} {
		cfg, err := config.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		err = cfg.Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestMembersRejected(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ from, to, want string }{
		"self elsewhere": {"self: b", "self: d", `members.self: "d" is not the name of a member`},
		"no base URL":    {"baseURL: https://freshet.example.com", "", "baseURL: must be set when members.list is set"},
		"two members": {
			`- {name: a, internal: "10.0.0.1:7443", etcd: "10.0.0.1:7380", log: "10.0.0.1:7422"}`,
			"", "has 2 members",
		},
		"same name": {"name: c", "name: a", "members.list[2].name: a is listed twice"},
		"odd name":  {"name: c", "name: C_1", "members.list[2].name"},
		"same address": {
			`log: "10.0.0.1:7422"`, `log: "10.0.0.1:7380"`,
			"is already the address of members.list[0].etcd",
		},
		"a client's address": {`log: "10.0.0.1:7422"`, `log: "127.0.0.1:8443"`, "is already the address of https"},
		"no port":            {`"10.0.0.1:7443"`, `"10.0.0.1"`, "members.list[0].internal"},
		"any address":        {`"10.0.0.1:7443"`, `"0.0.0.0:7443"`, "at which the other members reach"},
		"any port":           {`"10.0.0.1:7443"`, `"10.0.0.1:0"`, "at which the other members reach"},
		"no log":             {`, log: "10.0.0.1:7422"`, "", "members.list[0].log"},
		"etcd twice": {
			"members:", "etcd: {endpoints: [\"https://etcd.example.com:2379\"]}\nmembers:",
			"members.list[0].etcd: must be left out",
		},
		"a single replica": {"members:", "etcd: {singleReplica: true}\nmembers:", "etcd.singleReplica: cannot be true"},
		"listen at a name": {"members:", "members:\n  listen: {etcd: \"b.example.com:7380\"}", "members.listen.etcd"},
		"unknown field":    {"name: c,", "name: c, port: 1,", "port"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, err := config.Parse([]byte(strings.Replace(ensembleConfig, c.from, c.to, 1)))
			if err == nil {
				err = cfg.Validate()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	cfg := config.Default()
	cfg.Members.Self = "a"
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "members.list is empty") {
		t.Errorf("self without a list: got %v, want an error", err)
	}
}
