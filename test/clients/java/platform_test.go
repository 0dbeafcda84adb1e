package java_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestStreams: a word count of Kafka Streams, at least once, whose state comes back
// from its changelog topic.
func TestStreams(t *testing.T) {
	t.Parallel()
	need(t, "platform")
	s := start(t)
	out, all, err := run(t, compile(t, "platform", "programs"), nil, nil, "WordCount", s.file("login.properties", s.login()), filepath.Join(s.dir, "state"))
	report(t, out, all, err)
}

// prefixed returns properties whose names begin with a prefix.
func prefixed(prefix, properties string) string {
	lines := strings.Split(strings.ReplaceAll(properties, "\\\n", ""), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = prefix + line
		}
	}
	return strings.Join(lines, "\n")
}

// TestConnect: Connect in standalone mode reads a file into a topic, and the topic
// into another file; after a restart it goes on where it was.
func TestConnect(t *testing.T) {
	t.Parallel()
	need(t, "platform")
	s := start(t)
	in, out := s.file("in.txt", "one\ntwo\n"), filepath.Join(s.dir, "out.txt")
	worker := s.file("worker.properties", s.login()+prefixed("producer.", s.login())+prefixed("consumer.", s.login())+prefixed("admin.", s.login())+`
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
offset.storage.file.filename=`+filepath.Join(s.dir, "offsets")+`
offset.flush.interval.ms=1000
listeners=http://127.0.0.1:0
plugin.discovery=service_load
`)
	source := s.file("source.properties", `
name=lines-in
connector.class=org.apache.kafka.connect.file.FileStreamSourceConnector
file=`+in+`
topic=lines
`)
	sink := s.file("sink.properties", `
name=lines-out
connector.class=org.apache.kafka.connect.file.FileStreamSinkConnector
file=`+out+`
topics=lines
`)
	libs, err := filepath.Abs(filepath.Join(libraries, "platform"))
	if err != nil {
		t.Fatal(err)
	}
	for round, want := range []string{"one\ntwo\n", "one\ntwo\nthree\n"} {
		if round == 1 {
			if err := os.WriteFile(in, []byte(want), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		connect(t, libs+"/*", []string{worker, source, sink}, func() (bool, string) {
			text, err := os.ReadFile(out)
			return err == nil && string(text) == want, fmt.Sprintf("got %q (error %v), want %q", text, err, want)
		})
	}
	text := s.call("GET", "/rest-stream/admin/v1/groups/connect-lines-out", "")
	if !strings.Contains(text, `"lag":0`) {
		t.Errorf("group of the sink: got %s, want no lag", text)
	}
}

// connect runs Connect until something is done, and asks it to end.
func connect(t *testing.T, classpath string, files []string, done func() (bool, string)) {
	t.Helper()
	machines <- struct{}{}
	defer func() { <-machines }()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var log strings.Builder
	cmd := java(ctx, classpath, nil, "org.apache.kafka.connect.cli.ConnectStandalone", files...)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	state := ""
	for ended := false; !ended; {
		if ended, state = done(); ended {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			ended = true
		}
	}
	if ok, _ := done(); !ok {
		t.Error(state)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	// It ends with the signal as its status, having committed what it read.
	if err := cmd.Wait(); t.Failed() {
		t.Logf("Connect ended with %v\n%s", err, log.String())
	}
}
