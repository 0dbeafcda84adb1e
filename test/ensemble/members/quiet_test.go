package members_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"freshet/test/ensemble/chaos"
)

var (
	loudLine    = regexp.MustCompile(`(?m)^.*level=(WARN|ERROR) .*$`)
	libraryLine = regexp.MustCompile(`library=(etcd|nats)`)

	lostLine  = regexp.MustCompile(`(?m)^.*member is lost.*member=c\b.*$`)
	readyLine = regexp.MustCompile(`(?m)^.*member is ready.*member=c\b.*$`)
)

// TestQuietLog kills a member and starts it again. The others log one line when it is lost
// and one when it is ready again; warnings of etcd and NATS about it are not logged.
func TestQuietLog(t *testing.T) {
	g := start(t)
	a, c := g.Members[0], g.Members[2]
	run(t, a, "topic", "create", "orders")
	logged := map[string]int{}
	for _, m := range g.Members {
		text := fullLog(t, m)
		logged[m.Name] = len(text)
		checkQuiet(t, "while the ensemble started", m.Name, text)
	}
	c.Kill()
	for _, m := range g.Members[:2] {
		await(t, "log line that c is lost", 30*time.Second,
			func() bool { return lostLine.MatchString(fullLog(t, m)[logged[m.Name]:]) })
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, m := range g.Members[:2] {
		await(t, "log line that c is ready again", 20*time.Second,
			func() bool { return readyLine.MatchString(fullLog(t, m)[logged[m.Name]:]) })
		log := fullLog(t, m)[logged[m.Name]:]
		checkQuiet(t, "without c", m.Name, log)
		away := log[:readyLine.FindStringIndex(log)[0]]
		if got := len(lostLine.FindAllString(away, -1)); got != 1 {
			t.Errorf("member %s logs %d times that c is lost, want once:\n%s", m.Name, got, away)
		}
	}
	checkQuiet(t, "when it was back", c.Name, fullLog(t, c)[logged[c.Name]:])
}

// fullLog returns everything that a member has logged since its first start.
func fullLog(t *testing.T, m *chaos.Member) string {
	t.Helper()
	text, err := os.ReadFile(m.LogFile())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// checkQuiet checks that a log has at most two warnings of libraries, and no duplicate attributes.
func checkQuiet(t *testing.T, when, member, log string) {
	t.Helper()
	var loud []string
	for _, line := range loudLine.FindAllString(log, -1) {
		if libraryLine.MatchString(line) {
			loud = append(loud, line)
		}
	}
	if len(loud) > 2 {
		t.Errorf("%s: got %d warnings of libraries at member %s, want at most 2:\n%s", when, len(loud), member,
			strings.Join(loud, "\n"))
	}
	if double := regexp.MustCompile(`(?m)^.* (cluster|shard)=\S+ .*\b(cluster|shard)=.*$`); double.MatchString(log) {
		for _, line := range double.FindAllString(log, -1) {
			if strings.Count(line, " cluster=") > 1 || strings.Count(line, " shard=") > 1 {
				t.Errorf("%s: got attributes twice at member %s: %s", when, member, line)
			}
		}
	}
}
