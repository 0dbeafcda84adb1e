package members_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var allCurrent = regexp.MustCompile(`All \d+ streams have 3 current replicas`)

// TestFaultMissingReplicas kills a member: status, condition, health page and metrics report the
// missing replicas, and that all are current again when the member is back.
func TestFaultMissingReplicas(t *testing.T) {
	g := start(t)
	a, c := g.Members[0], g.Members[2]
	status := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), binary, append([]string{"ensemble", "status"}, args...)...)
		cmd.Env = append(os.Environ(), "HOME="+g.dir, "FRESHET_DATA_DIR="+filepath.Join(g.dir, "a"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	get := func(path string) string {
		_, content := call(t.Context(), a, a.Token(), http.MethodGet, path, "")
		return string(content)
	}
	const clusters = "/apis/cloud.vendor.io/v1alpha1/messagingclusters"
	good := func() bool {
		out, err := status()
		return err == nil && allCurrent.MatchString(out) && strings.Contains(get(clusters), "AllReplicasCurrent")
	}
	await(t, "all replicas current", 2*time.Minute, good)
	if out, err := status("--all"); err != nil || !strings.Contains(out, "log of shard 0") ||
		!strings.Contains(out, "meta layer") {
		t.Errorf("status --all: got %v\n%s", err, out)
	}
	c.Kill()
	await(t, "the missing replicas in the status", 2*time.Minute, func() bool {
		out, err := status()
		return err != nil && strings.Contains(out, "log of shard 0") && strings.Contains(out, "c: its server is down")
	})
	await(t, "the condition ReplicasMissing", 2*time.Minute, func() bool {
		return strings.Contains(get(clusters), "ReplicasMissing")
	})
	await(t, "the health page to report it", 2*time.Minute, func() bool {
		page := get("/readyz?verbose")
		return strings.Contains(page, "degraded: ") && strings.Contains(page, "replicas of the log are missing") &&
			!strings.Contains(page, "member c")
	})
	if text := get("/system/v1alpha1/metrics"); !regexp.MustCompile(
		`freshet_log_replicas_missing\{member="c"\} [1-9]`).MatchString(text) {
		t.Error("metrics do not report the missing replicas of c")
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, "all replicas current again", 2*time.Minute, good)
}
