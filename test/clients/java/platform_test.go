package java_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"freshet/test/freeport"
)

// TestStreams runs a word count with Kafka Streams, at least once, whose state is restored
// from its changelog topic.
func TestStreams(t *testing.T) {
	t.Parallel()
	need(t, "platform")
	s := start(t)
	out, all, err := run(t, compile(t, "platform", "programs"), nil, nil, "WordCount",
		s.settings("client.properties"), s.settings("streams.properties"), filepath.Join(s.dir, "state"))
	report(t, out, all, err)
}

// TestStreamsJoin joins orders, customers and payments, whose values have different types,
// with Kafka Streams. The program compares every record of the results with a model.
func TestStreamsJoin(t *testing.T) {
	t.Parallel()
	need(t, "platform")
	start(t).access().join(t)
}

// join runs the program that joins several topics.
func (a access) join(t *testing.T) {
	t.Helper()
	flags := []string{"-Dorg.slf4j.simpleLogger.defaultLogLevel=error"}
	out, all, err := run(t, compile(t, "platform", "programs"), flags, nil, "Join",
		a.settings(t, "client.properties"), a.settings(t, "streams.properties"), filepath.Join(a.Folder, "join-state"))
	report(t, out, all, err)
}

// TestConnect runs Kafka Connect in standalone mode from a file to a topic and from the
// topic to another file. After a restart it continues at its committed offsets.
func TestConnect(t *testing.T) {
	t.Parallel()
	need(t, "platform")
	s := start(t)
	in, out := s.file("in.txt", "one\ntwo\n"), filepath.Join(s.dir, "out.txt")
	worker, source, sink := s.settings("worker.properties"), s.settings("source.properties"),
		s.settings("sink.properties")
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
		connect(t, libs+"/*", "ConnectStandalone", []string{worker, source, sink}, func() (bool, string) {
			text, err := os.ReadFile(out)
			return err == nil && string(text) == want, fmt.Sprintf("got %q (error %v), want %q", text, err, want)
		})
	}
	text := s.call("GET", "/rest-stream/admin/v1/groups/connect-lines-out", "")
	if !strings.Contains(text, `"lag":0`) {
		t.Errorf("group of the sink: got %s, want no lag", text)
	}
}

// TestDistributedConnect runs a Connect worker that stores connectors, offsets and states
// in compacted topics and uses group coordination. After a restart it restores all of them.
func TestDistributedConnect(t *testing.T) {
	t.Parallel()
	need(t, "platform")
	s := start(t)
	libs, err := filepath.Abs(filepath.Join(libraries, "platform"))
	if err != nil {
		t.Fatal(err)
	}
	in, out := s.file("in.txt", "one\ntwo\n"), filepath.Join(s.dir, "out.txt")
	for round, want := range []string{"one\ntwo\n", "one\ntwo\nthree\n"} {
		addresses, err := freeport.Addresses(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		address := addresses[0]
		worker := s.distributed("listeners=http://"+address, `group.id=workers
config.storage.topic=connect-configs
offset.storage.topic=connect-offsets
status.storage.topic=connect-status
config.storage.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
scheduled.rebalance.max.delay.ms=0
`)
		created := round == 1
		if created {
			if err := os.WriteFile(in, []byte(want), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		connect(t, libs+"/*", "ConnectDistributed", []string{worker}, func() (bool, string) {
			if !created {
				created = putConnector(t, address, "lines-in",
					map[string]string{"connector.class": "FileStreamSource", "file": in, "topic": "lines"}) &&
					putConnector(t, address, "lines-out",
						map[string]string{"connector.class": "FileStreamSink", "file": out, "topics": "lines"})
			}
			text, err := os.ReadFile(out)
			return err == nil && string(text) == want,
				fmt.Sprintf("got %q (error %v, connectors created %v), want %q", text, err, created, want)
		})
	}
	if text := s.call(http.MethodGet, "/rest-stream/admin/v1/groups/workers", ""); !strings.Contains(text,
		`"protocol_type":"connect"`) {
		t.Errorf("group of the workers: got %s, want one of the type connect", text)
	}
}

// distributed writes the worker's settings with additional lines, and without the setting
// that exists in standalone mode only.
func (s *server) distributed(more ...string) string {
	s.Helper()
	path := s.settings("worker.properties", more...)
	text, err := os.ReadFile(path)
	if err != nil {
		s.Fatal(err)
	}
	return s.file("distributed.properties", strings.ReplaceAll(string(text), "offset.storage.file.filename", "#"))
}

// putConnector creates a connector and reports success; it fails while the worker starts.
func putConnector(t *testing.T, address, name string, config map[string]string) bool {
	t.Helper()
	body, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut,
		"http://"+address+"/connectors/"+name+"/config", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode/100 == 2
}

// connect runs Kafka Connect until done returns true, and then stops it with SIGTERM.
func connect(t *testing.T, classpath, kind string, files []string, done func() (bool, string)) {
	t.Helper()
	machines <- struct{}{}
	defer func() { <-machines }()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	var log strings.Builder
	cmd := java(ctx, classpath, nil, "org.apache.kafka.connect.cli."+kind, files...)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, state := done()
		if ok {
			break
		}
		select {
		case <-tick.C:
		case err := <-ended: // exited or killed by the timeout
			t.Fatalf("Connect ended with %v; %s\n%s", err, state, log.String())
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	<-ended // its offsets are committed now
}
