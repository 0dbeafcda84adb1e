package identity_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	rulesReviews = "/apis/authorization.vendor.io/v1alpha1/selfsubjectrulesreviews"
	userReviews  = "/apis/authorization.vendor.io/v1alpha1/selfsubjectuserreviews"
	canI         = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
)

func (w *world) review(path, token string, spec map[string]any) reply {
	w.Helper()
	return w.do(call{method: "POST", path: path, as: token, body: map[string]any{"spec": spec}}).want(201)
}

func TestWhoAmI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	boss := w.user("boss", true)
	r := w.review(userReviews, boss, nil)
	if r.text("kind") != "SelfSubjectUserReview" || r.text("status.users.0.kind") != "ServiceAccount" ||
		r.text("status.users.0.name") != "boss" ||
		r.text("status.users.0.organization") != w.org || r.at("status.administrator") != true ||
		r.at("status.systemAdministrator") != nil ||
		r.text("status.expirationTime") == "" || !strings.HasPrefix(r.text("status.principal"), "boss@"+w.org+".") {
		t.Errorf("an access token: %s, want service account boss, administrator of its organization", r.body)
	}
	r = w.review(userReviews, w.plainKey("k", "boss", ""), nil)
	if r.text("status.apiKey") != "k" || r.at("status.expirationTime") != nil {
		t.Errorf("an API key: %s, want key k without expiry", r.body)
	}
	if r := w.review(userReviews, "", nil); r.at("status.systemAdministrator") != true {
		t.Errorf("the operator: %s, want a system administrator", r.body)
	}
	w.do(call{method: "POST", path: userReviews, as: "-", body: map[string]any{}}).want(401)
	w.do(call{path: userReviews, as: boss}).want(403, 405)
}

func TestWhatMayIDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	robot := w.user("robot", false)
	w.bind("viewer", "org-readonly", "robot", nil)
	w.bind("owner", "instance-owner", "robot", in("prod"))
	r := w.review(rulesReviews, robot, nil)
	rules, _ := r.at("status.rules").([]any)
	if len(rules) != 3 {
		t.Fatalf("rules: %s, want 3", r.body)
	}
	found := map[string]bool{}
	for i := range rules {
		at := "status.rules." + string(rune('0'+i)) + "."
		permissions, _ := r.at(at + "permissions").([]any)
		switch r.text(at + "by") {
		case "role binding":
			found[r.text(at+"role")+" by "+r.text(at+"binding")+" in "+
				r.text(at+"restrictions.0.instance")] = len(permissions) > 0
		case "own account":
			found["own"] = slices.Contains(permissions, any("cloud.apikeys.describe")) &&
				r.text(at+"restrictions.0.serviceAccount") == "robot"
		}
	}
	for _, want := range []string{"org-readonly by viewer in ", "instance-owner by owner in prod", "own"} {
		if !found[want] {
			t.Errorf("%q is not among %v: %s", want, found, r.body)
		}
	}
	if r.at("status.incomplete") != true || r.text("status.evaluationError") == "" {
		t.Errorf("review does not report that restrictions make it incomplete: %s", r.body)
	}
	review := w.review(rulesReviews, robot, map[string]any{"instance": "test"})
	if got := len(review.at("status.rules").([]any)); got != 2 {
		t.Errorf("got %d rules for instance test, want 2", got)
	}
	rules, _ = w.review(rulesReviews, robot, map[string]any{"namespace": "elsewhere"}).at("status.rules").([]any)
	if len(rules) != 0 {
		t.Errorf("rules in another organization: %v, want none", rules)
	}
}

func TestMayIDoThis(t *testing.T) {
	t.Parallel()
	w, users := shared(t)
	for _, c := range []struct {
		user, verb, resource, name string
		want                       bool
	}{
		{"owner", "list", "messagingclusters", "", true},
		{"owner", "delete", "messagingclusters", "prod-a", true},
		{"owner", "delete", "messagingclusters", "test-a", false},
		{"owner", "create", "messagingclusters", "", true},
		{"owner", "create", "messaginginstances", "", false},
		{"reader", "get", "messagingclusters", "prod-a", true},
		{"reader", "get", "messagingclusters", "test-a", false},
		{"reader", "patch", "messagingclusters", "prod-a", false},
		{"reader", "get", "serviceaccounts", "reader", true},
		{"reader", "get", "serviceaccounts", "owner", false},
		{"reader", "list", "clusterroles", "", true},
		{"reader", "delete", "clusterroles", "org-admin", false},
		{"everyone", "watch", "apikeys", "", true},
		{"everyone", "*", "*", "", false},
		{"everyone", "impersonate", "users", "", false},
	} {
		r := w.review(canI, users[c.user], map[string]any{"resourceAttributes": map[string]any{
			"namespace": w.org, "group": "cloud.vendor.io", "verb": c.verb, "resource": c.resource, "name": c.name,
		}})
		if r.at("status.allowed") != c.want {
			t.Errorf("%s, %s %s %s: %s; want %v", c.user, c.verb, c.resource, c.name, r.body, c.want)
		}
	}
	r := w.review(canI, users["reader"],
		map[string]any{"nonResourceAttributes": map[string]any{"path": "/apis", "verb": "get"}})
	if r.at("status.allowed") != true {
		t.Errorf("discovery: %s, want %v", r.body, true)
	}
	w.do(call{method: "POST", path: canI, body: map[string]any{"spec": map[string]any{}}}).want(422)
}

// kubectlPath returns KUBECTL, or the installed kubectl.
func kubectlPath(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("KUBECTL"); path != "" {
		return path
	}
	path, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not installed")
	}
	return path
}

func TestKubectlSelfReviews(t *testing.T) {
	t.Parallel()
	kubectl := kubectlPath(t)
	w := newWorld(t)
	robot := w.user("robot", false)
	w.bind("viewer", "org-readonly", "robot", nil)
	run := func(args ...string) string {
		t.Helper()
		args = append([]string{
			"--server", w.server.HTTPS, "--certificate-authority", filepath.Join(w.server.DataDir, "tls", "ca.crt"),
			"--token", robot, "--namespace", w.org, "--kubeconfig", "/dev/null", "--cache-dir", t.TempDir(),
		}, args...)
		out, err := exec.CommandContext(t.Context(), kubectl, args...).CombinedOutput()
		if err != nil && !strings.HasPrefix(string(out), "no") {
			t.Errorf("kubectl %v: %v\n%s", args[10:], err, out)
		}
		return string(out)
	}
	if out := run("auth", "whoami"); !strings.Contains(out, "robot@"+w.org) {
		t.Errorf("whoami: %s, want %s", out, "robot@"+w.org)
	}
	if out := run("auth", "can-i", "list", "apikeys"); !strings.HasPrefix(out, "yes") {
		t.Errorf("can-i list apikeys: %s, want yes", out)
	}
	if out := run("auth", "can-i", "delete", "apikeys"); !strings.HasPrefix(out, "no") {
		t.Errorf("can-i delete apikeys: %s, want no", out)
	}
	if out := run("auth", "can-i", "--list"); !strings.Contains(out, "messagingclusters.cloud.vendor.io") {
		t.Errorf("can-i --list: %s, want messagingclusters.cloud.vendor.io", out)
	}
	for _, kind := range []string{
		"apikey.spec.encryptionKey",
		"selfsubjectrulesreviews.authorization.vendor.io.status.rules",
	} {
		if out := run("explain", kind); !strings.Contains(out, "FIELDS:") {
			t.Errorf("explain %s: %s, want FIELDS:", kind, out)
		}
	}
}
