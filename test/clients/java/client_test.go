package java_test

import (
	"strings"
	"testing"
)

// TestClients runs the programs of client/ and newest/ with Kafka clients of two major
// versions. They cover what Kafka's own integration tests cover, and Kafka and HTTP
// together. Each line of their output is a subtest.
func TestClients(t *testing.T) {
	t.Parallel()
	for version, folders := range map[string][]string{"client-3.9": {"client"}, "client-4": {"client", "newest"}} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			need(t, version)
			s := start(t)
			endpoint := s.URL + "/oauth/token"
			settings := s.settings("client.properties", "test.version="+version,
				"test.tls="+s.settings("tls.properties"), "test.oauth="+s.settings("oauth.properties"),
				"test.token="+s.Token, "test.nobody="+s.unprivilegedToken())
			flags := []string{
				"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=" + endpoint,
				"-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
			}
			out, all, err := run(t, compile(t, version, folders...), flags, nil, "Main", settings)
			report(t, out, all, err)
		})
	}
}

// report turns every step in a program's output into a subtest.
func report(t *testing.T, out, all string, err error) {
	t.Helper()
	lines := strings.Split(out, "\n")
	ended := false
	for i, line := range lines {
		word, rest, _ := strings.Cut(line, " ")
		name, rest, _ := strings.Cut(rest, " ")
		switch word {
		case "ok":
			t.Run(name, func(t *testing.T) { t.Log(rest) })
		case "FAIL":
			t.Run(name, func(t *testing.T) {
				t.Errorf("%s\n%s", rest,
					strings.Join(lines[i:min(len(lines), i+12)], "\n"))
			})
		case "end":
			ended = true
		}
	}
	if !ended {
		t.Errorf("program did not complete: %v\n%s", err, all)
	}
}
