// Package kubectl tests the resource API of the real binary with the real kubectl, which is
// built from its own module.
package kubectl

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"freshet/test/testserver"
)

// client runs kubectl against one server, in one organization.
type client struct {
	t            *testing.T
	binary       string
	kubeconfig   string
	organization string
	home         string
	editor       string // for kubectl edit; "" means an editor that fails
	token        string // used instead of the kubeconfig if not empty
}

// result is the output and exit code of a command.
type result struct {
	out, err string
	code     int
}

var (
	server  *testserver.Server
	kubectl string
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "freshet-kubectl-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if kubectl, err = kubectlBinary(ctx, dir); err != nil {
		return 0, err
	}
	binary, err := testserver.Binary(ctx, dir)
	if err != nil {
		return 0, err
	}
	if server, err = testserver.Start(ctx, binary, dir, testserver.Options{}); err != nil {
		return 0, err
	}
	code = m.Run()
	return code, server.Stop(30 * time.Second)
}

// kubectlBinary returns KUBECTL, or a kubectl that it builds.
func kubectlBinary(ctx context.Context, dir string) (string, error) {
	if path := os.Getenv("KUBECTL"); path != "" {
		return path, nil
	}
	path := filepath.Join(dir, "kubectl")
	const pkg = "k8s.io/component-base/version."
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "-ldflags",
		"-X "+pkg+"gitVersion=v1.37.2 -X "+pkg+"gitMajor=1 -X "+pkg+"gitMinor=37", "./kubectl")
	build.Dir = "../../../tools/k8s"
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building kubectl: %w\n%s", err, out)
	}
	return path, nil
}

var organizations struct {
	sync.Mutex
	n int
}

// in returns a client for an organization that no other test uses.
func in(t *testing.T) *client {
	t.Helper()
	t.Parallel()
	organizations.Lock()
	defer organizations.Unlock()
	organizations.n++
	return &client{
		t: t, binary: kubectl, kubeconfig: filepath.Join(server.DataDir, "kubeconfig"),
		organization: fmt.Sprintf("kubectl-%d", organizations.n), home: t.TempDir(),
	}
}

// command prepares kubectl with its own home directory, so that the caches and settings of
// the user who runs the test are not used.
func (c *client) command(ctx context.Context, stdin string, args ...string) *exec.Cmd {
	flags := []string{"--kubeconfig", c.kubeconfig, "-n", c.organization}
	if c.token != "" {
		flags = []string{
			"--kubeconfig", os.DevNull, "--server", server.HTTPS,
			"--certificate-authority", filepath.Join(server.DataDir, "tls", "ca.crt"), "--token", c.token, "-n",
			c.organization,
		}
	}
	cmd := exec.CommandContext(ctx, c.binary, append(flags, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+c.home, "TMPDIR="+c.home, "KUBE_EDITOR="+cmp.Or(c.editor, "false"))
	cmd.Stdin = strings.NewReader(stdin)
	return cmd
}

func (c *client) try(stdin string, args ...string) result {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	cmd := c.command(ctx, stdin, args...)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.t.Fatalf("kubectl %s: %v", strings.Join(args, " "), err)
	}
	return result{out.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// must runs a command that must succeed and returns its output.
func (c *client) must(stdin string, args ...string) string {
	c.t.Helper()
	r := c.try(stdin, args...)
	if r.code != 0 {
		c.t.Fatalf("kubectl %s: exit %d, want 0\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r.out
}

func (c *client) contains(text string, wants ...string) {
	c.t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			c.t.Errorf("output does not contain %q:\n%s", want, text)
		}
	}
}

const user = `apiVersion: cloud.vendor.io/v1alpha1
kind: User
metadata:
  name: ann
  labels: {team: a}
spec:
  email: ann@example.org
`

func TestDiscovery(t *testing.T) {
	c := in(t)
	c.contains(c.must("", "version"), "Client Version: v1.", "Server Version: v1.")
	c.contains(c.must("", "api-versions"), "cloud.vendor.io/v1alpha1")
	resources := c.must("", "api-resources", "--api-group=cloud.vendor.io", "-o", "wide")
	c.contains(resources, "serviceaccounts", "sab", "usr", "messaginginstances", "mc", "ak", "rb", "cr", "pool", "pm",
		"deletecollection")
	c.contains(c.must("", "explain", "messagingcluster.spec.broker.resources", "--recursive"), "memory", "cpu",
		"heapPercentage")
	c.contains(c.must("", "explain", "ak.spec.revoke"), "boolean", "FIELD: revoke")
	c.contains(c.must("", "get", "--raw", "/readyz?verbose"), "ok")
}

func TestCreateReadDelete(t *testing.T) {
	c := in(t)
	c.contains(c.must(user, "create", "--validate=strict", "-f", "-"), "user.cloud.vendor.io/ann created")
	if r := c.try(user, "create", "-f", "-"); r.code == 0 || !strings.Contains(r.err, "AlreadyExists") {
		t.Errorf("second create: %+v, want AlreadyExists", r)
	}
	if r := c.try(user+"  surplus: 1\n", "create", "--validate=strict", "-f", "-"); r.code == 0 ||
		!strings.Contains(r.err, "surplus") {
		t.Errorf("unknown field: %+v, want an error that names surplus", r)
	}
	c.contains(c.must("", "get", "usr", "ann"), "NAME", "READY", "REASON", "EMAIL", "AGE", "ann@example.org")
	c.contains(c.must("", "get", "users", "-l", "team=a", "-o", "name"), "user.cloud.vendor.io/ann")
	c.contains(c.must("", "get", "users", "--field-selector", "metadata.name=ann", "-o",
		"jsonpath={.items[0].spec.email}"), "ann@example.org")
	c.contains(c.must("", "get", "user", "ann", "-o", "yaml"), "kind: User", "email: ann@example.org")
	c.contains(c.must("", "get", "all"), "user.cloud.vendor.io/ann")
	c.contains(c.must("", "describe", "user", "ann"), "Email:", "ann@example.org")
	c.contains(c.must("", "delete", "user", "ann"), "deleted")
	if r := c.try("", "get", "user", "ann"); r.code == 0 ||
		!strings.Contains(r.err, `users.cloud.vendor.io "ann" not found`) {
		t.Errorf("get of a deleted user: %+v, want an error with %s", r, `users.cloud.vendor.io "ann" not found`)
	}
}

func TestChange(t *testing.T) {
	c := in(t)
	c.must(user, "create", "-f", "-")
	c.must("", "label", "user", "ann", "team=b", "--overwrite")
	c.must("", "annotate", "user", "ann", "note=hello")
	c.must("", "patch", "user", "ann", "--type=merge", "-p", `{"spec": {"type": "internal"}}`)
	c.must("", "patch", "user", "ann", "--type=json", "-p",
		`[{"op": "add", "path": "/metadata/labels/json", "value": "yes"}]`)
	c.must("", "patch", "user", "ann", "--type=strategic", "-p", `{"metadata": {"labels": {"strategic": "yes"}}}`)
	c.must("", "patch", "user", "ann", "--subresource=status", "--type=merge", "-p",
		`{"status": {"conditions": [{"type": "Tried", "status": "True", "reason": "Test", "message": "", `+
			`"lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`)
	c.must(strings.ReplaceAll(user, "ann@example.org", "new@example.org"), "replace", "-f", "-")
	got := c.must("", "get", "user", "ann", "-o", "json")
	var object struct {
		Metadata struct{ Labels map[string]string }
		Spec     struct{ Email, Type string }
	}
	if err := json.Unmarshal([]byte(got), &object); err != nil {
		t.Fatal(err)
	}
	if object.Spec.Email != "new@example.org" || object.Spec.Type != "" || object.Metadata.Labels["json"] != "" {
		t.Errorf("replace did not replace the object: %s, want new@example.org, no type and no label", got)
	}
	if r := c.try("", "patch", "user", "ann", "--type=merge", "-p", `{"spec": {"email": "nonsense"}}`); r.code == 0 ||
		!strings.Contains(r.err, "spec.email") {
		t.Errorf("invalid address: %+v, want an error that names spec.email", r)
	}
}

func TestApply(t *testing.T) {
	c := in(t)
	c.contains(c.must(user, "apply", "-f", "-"), "created")
	c.contains(c.must(user, "apply", "-f", "-"), "unchanged")
	changed := strings.ReplaceAll(user, "team: a", "team: b")
	c.contains(c.must(changed, "apply", "--dry-run=server", "-f", "-"), "configured (server dry run)")
	if r := c.try(changed, "diff", "-f", "-"); r.code != 1 || !strings.Contains(r.out, "+    team: b") {
		t.Errorf("diff: %+v, want exit code 1 and +    team: b", r)
	}
	c.contains(c.must(changed, "apply", "-f", "-"), "configured")
	if r := c.try(changed, "diff", "-f", "-"); r.code != 0 {
		t.Errorf("diff of the applied manifest: %+v, want exit code 0", r)
	}
}

func TestServerSideApply(t *testing.T) {
	c := in(t)
	c.contains(c.must(user, "apply", "--server-side", "--field-manager=one", "-f", "-"), "serverside-applied")
	other := strings.ReplaceAll(user, "team: a", "team: b")
	if r := c.try(other, "apply", "--server-side", "--field-manager=two", "-f", "-"); r.code == 0 ||
		!strings.Contains(r.err, "conflict") {
		t.Errorf("another value by another manager: %+v, want a conflict", r)
	}
	c.contains(c.must(other, "apply", "--server-side", "--field-manager=two", "--force-conflicts", "-f", "-"),
		"serverside-applied")
	c.contains(c.must("", "get", "user", "ann", "-o", "yaml", "--show-managed-fields"), "manager: two",
		"operation: Apply", "team: b")
}

func TestWatchAndWait(t *testing.T) {
	c := in(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	watch := c.command(ctx, "", "get", "users", "--watch", "--no-headers", "-o", "name")
	stdout, err := watch.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	c.must(user, "create", "-f", "-")
	seen := bufio.NewScanner(stdout)
	if !seen.Scan() || seen.Text() != "user.cloud.vendor.io/ann" {
		t.Errorf("watch: got %q, %v", seen.Text(), seen.Err())
	}
	cancel()
	_ = watch.Wait() // killed by cancel
	c.contains(c.must("", "wait", "user/ann", "--for=condition=Ready=False", "--timeout=30s"), "condition met")
	c.must("", "delete", "user", "ann", "--wait=false")
	c.must("", "wait", "user/ann", "--for=delete", "--timeout=30s")
}

func TestCascade(t *testing.T) {
	c := in(t)
	c.must(user, "create", "-f", "-")
	uid := c.must("", "get", "user", "ann", "-o", "jsonpath={.metadata.uid}")
	child := strings.NewReplacer("name: ann", "name: bob", "spec:", `  ownerReferences:
  - {apiVersion: cloud.vendor.io/v1alpha1, kind: User, name: ann, uid: `+uid+`, blockOwnerDeletion: true}
spec:`).Replace(user)
	c.must(child, "create", "-f", "-")
	c.must("", "delete", "user", "ann", "--cascade=foreground", "--timeout=30s")
	if r := c.try("", "get", "user", "bob"); r.code == 0 {
		t.Errorf("dependent exists after a foreground deletion: %s", r.out)
	}
}

func TestProvisioning(t *testing.T) {
	c := in(t)
	c.must(`apiVersion: cloud.vendor.io/v1alpha1
kind: MessagingInstance
metadata: {name: main}
---
apiVersion: cloud.vendor.io/v1alpha1
kind: MessagingCluster
metadata: {name: orders}
spec: {instanceName: main, location: local}
---
apiVersion: cloud.vendor.io/v1alpha1
kind: ServiceAccount
metadata: {name: robot}
`, "apply", "-f", "-")
	c.must("", "wait", "mi/main", "mc/orders", "sa/robot", "--for=condition=Ready", "--timeout=60s")
	c.contains(c.must("", "get", "mi,mc,sa"), "AllConditionStatusTrue", "Provisioned", "orders")
	if r := c.try("", "delete", "mi", "main", "--wait=false"); r.code == 0 || !strings.Contains(r.err, "orders") {
		t.Errorf("deleting an instance with a cluster: %+v, want an error that names orders", r)
	}
	c.must("", "delete", "mc", "orders", "--timeout=60s")
	c.must("", "delete", "mi", "main", "--timeout=60s")
}
