package operations

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"freshet/test/testserver"
)

var binary string

func TestMain(m *testing.M) { testserver.Main(m, &binary) }

// generate returns the output of `freshet generate`.
func generate(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), binary, append([]string{"generate"}, args...)...).Output()
	if err != nil {
		t.Fatalf("freshet generate %v: %v", args, err)
	}
	return string(out)
}

// file writes a file into a folder and returns its path.
func file(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// need returns the path of a program, or skips the test if it is not installed.
func need(t *testing.T, program, debian string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("NOT TESTED: %s is not installed (Debian: %s)", program, debian)
	}
	return path
}

// run runs a program that must succeed, and returns its output.
func run(t *testing.T, folder, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// activeServer starts a server and creates some activity: messages, schemas, a consumer group,
// scheduled backups.
func activeServer(t *testing.T) *testserver.Server {
	t.Helper()
	folder := t.TempDir()
	server, err := testserver.Start(t.Context(), binary, folder, testserver.Options{
		Kafka: true, Env: []string{
			"FRESHET_BACKUP_DIRECTORY=" + filepath.Join(folder, "backups"),
			"FRESHET_BACKUP_EVERY=1h",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(30 * time.Second); err != nil {
			t.Error(err)
		}
	})
	demo := exec.CommandContext(t.Context(), binary, "demo", "--context", "local", "--for", "1s")
	demo.Env = append(os.Environ(), "HOME="+folder, "FRESHET_DATA_DIR="+server.DataDir)
	if out, err := demo.CombinedOutput(); err != nil {
		t.Fatalf("freshet demo: %v\n%s", err, out)
	}
	createLag(t, server)
	return server
}

// createLag produces two records over Kafka, and leaves a consumer group with a lag of one.
func createLag(t *testing.T, server *testserver.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(server.Kafka), kgo.SASL(plain.Auth{User: "user", Pass: "token:" + server.Token}.AsMechanism()),
		kgo.AllowAutoTopicCreation(), kgo.DefaultProduceTopic("followed"), kgo.ConsumeTopics("followed"),
		kgo.ConsumerGroup("followers"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, value := range []string{"first", "second"} {
		if err := client.ProduceSync(ctx, kgo.StringRecord(value)).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	fetches := client.PollRecords(ctx, 1)
	if err := fetches.Err(); err != nil {
		t.Fatal(err)
	}
	if err := client.CommitRecords(ctx, fetches.Records()...); err != nil {
		t.Fatal(err)
	}
}

// get returns the body of a response.
func get(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// until calls lacks repeatedly until it returns "", and fails with its last result after
// the time limit.
func until(t *testing.T, limit time.Duration, lacks func() string) {
	t.Helper()
	for end := time.Now().Add(limit); ; {
		missing := lacks()
		if missing == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %s: %s", limit, missing)
		}
		select {
		case <-t.Context().Done():
			return
		case <-time.After(200 * time.Millisecond):
		}
	}
}
