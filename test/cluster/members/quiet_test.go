package members_test

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

var (
	loudLine = regexp.MustCompile(`(?m)^.*level=(WARN|ERROR) .*$`)
	libraryS = regexp.MustCompile(`library=(etcd|nats)`)
)

// TestQuietLog kills a member and starts it again: the others say in one line that it is
// lost and in one that it is there, and what etcd and NATS say of it stays out of the
// log.
func TestQuietLog(t *testing.T) {
	g := start(t)
	a, c := g.Members[0], g.Members[2]
	run(t, a, "topic", "create", "orders")
	for _, m := range g.Members {
		quiet(t, "while the group started", m.Name, m.Log())
	}
	c.Kill()
	began := time.Now()
	await(t, "a while without c", time.Minute, func() bool { return time.Since(began) > 8*time.Second })
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, m := range g.Members[:2] {
		await(t, "the news that c is back", 20*time.Second, func() bool { return strings.Contains(m.Log(), "is there and ready") })
		log := m.Log()
		quiet(t, "without c", m.Name, log)
		lost, there := strings.Count(log, "a member of the group is lost"), strings.Count(log, "is there and ready")
		if lost < 1 || lost > there {
			t.Errorf("member %s says %d times that another is lost and %d times that it is there, want once for each change", m.Name, lost, there)
		}
	}
	quiet(t, "when it was back", c.Name, c.Log())
}

// quiet wants at most a handful of warnings of libraries.
func quiet(t *testing.T, when, member, log string) {
	t.Helper()
	var loud []string
	for _, line := range loudLine.FindAllString(log, -1) {
		if libraryS.MatchString(line) {
			loud = append(loud, line)
		}
	}
	if len(loud) > 2 {
		t.Errorf("%s: got %d warnings of libraries at member %s, want at most 2:\n%s", when, len(loud), member, strings.Join(loud, "\n"))
	}
	if double := regexp.MustCompile(`(?m)^.* (cluster|shard)=\S+ .*\b(cluster|shard)=.*$`); double.MatchString(log) {
		for _, line := range double.FindAllString(log, -1) {
			if strings.Count(line, " cluster=") > 1 || strings.Count(line, " shard=") > 1 {
				t.Errorf("%s: got attributes twice at member %s: %s", when, member, line)
			}
		}
	}
}
