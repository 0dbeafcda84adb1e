package java_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"freshet/test/tally"
	"freshet/test/testserver"
)

// TestFaultKillUnderJava kills the server under an idempotent Java producer and two Java
// consumers, one of each group protocol. Acknowledged records exist, once and in order, and
// the consumer groups continue without a rebalance.
func TestFaultKillUnderJava(t *testing.T) {
	t.Parallel()
	need(t, "platform")
	count, kills := 4000, 2
	if tally.Long() {
		count, kills = 20_000, 10
	}
	s := start(t)
	settings := s.settings("client.properties")
	again := testserver.Options{DataDir: s.DataDir, Args: []string{"--stream", s.Kafka}, Kafka: true}
	classpath := compile(t, "platform", "programs")
	machines <- struct{}{}
	defer func() { <-machines }()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := java(ctx, classpath, []string{"-Dorg.slf4j.simpleLogger.defaultLogLevel=error"}, "Unbroken", settings,
		fmt.Sprint(count))
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fault := tally.Fault{Name: "kill -9 under Java clients", Checked: count}
	var out strings.Builder
	for lines := bufio.NewScanner(io.TeeReader(stdout, &out)); lines.Scan(); {
		var acked int
		if _, err := fmt.Sscanf(lines.Text(), "acked %d", &acked); err != nil || fault.Injected == kills ||
			acked < (fault.Injected+1)*count/(kills+1) {
			continue
		}
		s.Kill()
		fault.Injected++
		began := time.Now()
		if s.Server, err = testserver.Start(t.Context(), binary, s.dir, again); err != nil {
			t.Fatal(err)
		}
		fault.Recovery = max(fault.Recovery, time.Since(began))
	}
	err = cmd.Wait()
	report(t, out.String(), out.String(), err)
	fault.Wrong = strings.Count(out.String(), "FAIL ")
	fault.Record(t)
}
