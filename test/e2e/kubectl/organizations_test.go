package kubectl

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const account = `apiVersion: cloud.vendor.io/v1alpha1
kind: ServiceAccount
metadata: {name: robot}
`

func binding(role string) string {
	return `apiVersion: cloud.vendor.io/v1alpha1
kind: RoleBinding
metadata: {name: robot}
spec:
  subjects: [{kind: ServiceAccount, name: robot}]
  roleRef: {kind: ClusterRole, name: ` + role + `}
`
}

func TestNamespaces(t *testing.T) {
	c := in(t)
	if r := c.try(user, "create", "-f", "-"); r.code != 0 ||
		!strings.Contains(r.err, `Warning: organization "`+c.organization+`" did not exist and is created`) {
		t.Errorf("first object of an organization: %+v, want a warning", r)
	}
	c.contains(c.must("", "get", "ns"), "NAME", "STATUS", "AGE", "default", c.organization)
	c.contains(c.must("", "get", "namespace", c.organization, "-o", "yaml"), "kind: Namespace", "phase: Active")
	c.contains(c.must("", "describe", "ns", c.organization), "Status:", "Active")
	c.contains(c.must("", "explain", "namespace"), "an organization")

	created := c.organization + "-made"
	c.contains(c.must("", "create", "namespace", created), "namespace/"+created+" created")
	c.contains(c.must("", "get", "ns", created, "-o", "name"), "namespace/"+created)
	c.contains(c.must("", "delete", "ns", created), "deleted")
	if r := c.try("", "delete", "ns", c.organization); r.code == 0 || !strings.Contains(r.err, "users/ann") {
		t.Errorf("deleting an organization in use: %+v, want an error that names users/ann", r)
	}
	if r := c.try("", "get", "user", "ann", "-n", created); r.code == 0 || !strings.Contains(r.err, "not found") {
		t.Errorf("in a missing organization: %+v, want not found", r)
	}
}

// TestDescribeShowsEvents checks that kubectl describe shows the events of an object's controller.
func TestDescribeShowsEvents(t *testing.T) {
	c := in(t)
	c.must(account, "create", "-f", "-")
	c.must("", "wait", "--for=condition=Ready", "serviceaccount/robot", "--timeout=30s")
	c.eventually("Provisioned", "describe", "sa", "robot")
	c.contains(c.must("", "describe", "sa", "robot"), "Events:", "Provisioned", "the credentials can be used")
	c.contains(c.must("", "get", "events"), "ServiceAccount/robot")
	c.contains(c.must("", "events", "--for", "serviceaccounts.cloud.vendor.io/robot"), "Provisioned")
	c.contains(c.must("", "get", "events.events.k8s.io", "-o", "jsonpath={.items[*].regarding.name}"), "robot")

	const missing = `apiVersion: cloud.vendor.io/v1alpha1
kind: ServiceAccountBinding
metadata: {name: lost}
spec: {serviceAccountName: nobody, poolMemberRef: {namespace: default, name: local}}
`
	c.must(missing, "create", "-f", "-")
	c.eventually("Warning", "describe", "sab", "lost")
	c.contains(c.must("", "describe", "sab", "lost"), "ServiceAccountNotFound")
}

// eventually waits until a command prints a text: events are written after the changes that
// they report.
func (c *client) eventually(want string, args ...string) {
	c.t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for {
		out := c.must("", args...)
		if strings.Contains(out, want) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			c.t.Fatalf("kubectl %s does not print %q:\n%s", strings.Join(args, " "), want, out)
		}
	}
}

func TestCreateToken(t *testing.T) {
	c := in(t)
	c.must(account, "create", "-f", "-")
	c.must("", "wait", "--for=condition=Ready", "serviceaccount/robot", "--timeout=30s")
	c.must(binding("account-admin"), "create", "-f", "-")
	token := strings.TrimSpace(c.must("", "create", "token", "robot", "--duration=15m"))
	robot := *c
	robot.token = token
	c.contains(robot.must("", "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"), "robot@"+c.organization)
	c.contains(robot.must("", "get", "ns", "-o", "name"), "namespace/"+c.organization)
	if out := robot.must("", "get", "ns", "-o", "name"); strings.Contains(out, "default") {
		t.Errorf("account sees other organizations: %s", out)
	}
	if r := robot.try("", "auth", "can-i", "create", "users"); strings.TrimSpace(r.out) != "yes" {
		t.Errorf("can-i: %+v, want yes", r)
	}
	if r := robot.try("", "auth", "can-i", "create", "messaginginstances"); r.code == 0 {
		t.Errorf("can-i: %+v, want no", r)
	}
	robot.must("", "create", "token", "robot") // a token for itself

	// Creating a token for another account would grant all permissions of that account.
	c.must(strings.ReplaceAll(account, "robot", "boss"), "create", "-f", "-")
	c.must("", "wait", "--for=condition=Ready", "serviceaccount/boss", "--timeout=30s")
	c.must(strings.ReplaceAll(binding("org-admin"), "robot", "boss"), "create", "-f", "-")
	if r := robot.try("", "create", "token", "boss"); r.code == 0 ||
		!strings.Contains(r.err, "a principal can grant only permissions that it has") {
		t.Errorf("token for an account with more permissions: %+v, want an error", r)
	}
	for args, want := range map[string]string{
		"robot --duration=1m":                                   "at least 600",
		"robot --audience=https://else.org":                     "is neither the address of this server nor",
		"robot --audience=urn:vendor:messaging:default:default": "is neither the address of this server nor",
		"nobody": "not found",
	} {
		if r := c.try("", append([]string{"create", "token"}, strings.Fields(args)...)...); r.code == 0 ||
			!strings.Contains(r.err, want) {
			t.Errorf("create token %s: %+v, want %q", args, r, want)
		}
	}
}

// TestTokenOfANewAccount checks that a token can be requested immediately after the creation
// of an account.
func TestTokenOfANewAccount(t *testing.T) {
	c := in(t)
	for i := range 10 {
		name := fmt.Sprintf("fresh-%d", i)
		c.must(fmt.Sprintf("apiVersion: cloud.vendor.io/v1alpha1\nkind: ServiceAccount\nmetadata: {name: %s}\n", name),
			"create", "-f", "-")
		if r := c.try("", "create", "token", name); r.code != 0 {
			t.Errorf("token directly after creating account %s: %+v, want one", name, r)
		}
	}
}

// TestEmptyBody checks requests of kubectl create --raw, which sends a body of unknown length
// that may be empty.
func TestEmptyBody(t *testing.T) {
	c := in(t)
	c.must(user, "create", "-f", "-")
	path := "/apis/cloud.vendor.io/v1alpha1/namespaces/" + c.organization
	c.contains(c.must("", "create", "--raw", path+"/users/ann/invite", "-f", "/dev/null"), "/oauth/invite?token=")
	c.must("apiVersion: cloud.vendor.io/v1alpha1\nkind: ServiceAccount\nmetadata: {name: robot}\n", "create", "-f", "-")
	c.must("", "wait", "--for=condition=Ready", "serviceaccount/robot", "--timeout=30s")
	c.contains(c.must("", "create", "--raw", path+"/serviceaccounts/robot/rotate", "-f", "/dev/null"), "privateKeyData")
	if r := c.try("{", "create", "--raw", path+"/users/ann/invite", "-f", "-"); r.code == 0 {
		t.Errorf("truncated body: %+v, want an error", r)
	}
}

// TestVersion checks that kubectl accepts the server's version, which also contains Freshet's.
func TestVersion(t *testing.T) {
	c := in(t)
	out := c.must("", "version", "-o", "json")
	c.contains(out, `+freshet.`)
	if r := c.try("", "version"); r.code != 0 || strings.Contains(r.err, "WARNING") {
		t.Errorf("kubectl version: %+v, want no warning", r)
	}
}
