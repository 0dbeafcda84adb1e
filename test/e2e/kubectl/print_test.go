package kubectl

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// world is a manifest with one object of each kind that users write.
const world = `apiVersion: cloud.vendor.io/v1alpha1
kind: ServiceAccount
metadata: {name: robot}
---
apiVersion: cloud.vendor.io/v1alpha1
kind: User
metadata: {name: ann@example.org}
spec: {email: ann@example.org}
---
apiVersion: cloud.vendor.io/v1alpha1
kind: MessagingInstance
metadata: {name: main}
---
apiVersion: cloud.vendor.io/v1alpha1
kind: MessagingCluster
metadata: {name: orders}
spec: {instanceName: main, location: local, broker: {resources: {cpu: 400m, memory: 1.6Gi}}}
---
apiVersion: cloud.vendor.io/v1alpha1
kind: APIKey
metadata: {name: key}
spec: {serviceAccountName: robot, instanceName: main, expirationTime: "2100-01-01T00:00:00Z"}
---
apiVersion: cloud.vendor.io/v1alpha1
kind: RoleBinding
metadata: {name: reader}
spec:
  subjects: [{kind: ServiceAccount, name: robot}]
  roleRef: {kind: ClusterRole, name: org-readonly}
---
apiVersion: cloud.vendor.io/v1alpha1
kind: ServiceAccountBinding
metadata: {name: robot}
spec: {serviceAccountName: robot, poolMemberRef: {namespace: default, name: local}}
`

// TestPrint prints every kind in every output format.
func TestPrint(t *testing.T) {
	c := in(t)
	c.must(world, "create", "--validate=strict", "-f", "-")
	c.must("", "wait", "sa/robot", "mi/main", "mc/orders", "rb/reader", "sab/robot", "--for=condition=Ready",
		"--timeout=60s")
	c.must("", "wait", "usr/ann@example.org", "--for=condition=Ready=False", "--timeout=60s")
	c.must("", "wait", "ak/key", "--for=condition=Issued", "--timeout=60s")
	c.must("", "wait", "mc/orders", "--for=jsonpath={.status.broker.readyReplicas}=1", "--timeout=60s")
	for kind, want := range map[string][]string{
		"sa":  {"READY", "REASON", "ADMIN", "AGE", "robot", "True", "Provisioned", "false"},
		"usr": {"EMAIL", "ann@example.org", "False", "NotInvited"},
		"mi":  {"TYPE", "MODE", "AllConditionStatusTrue", "standard", "zonal"},
		"mc":  {"AS REQUESTED", "INSTANCE", "LOCATION", "ENDPOINT", "orders." + c.organization + ".freshet.localhost"},
		"ak":  {"ACCOUNT", "INSTANCE", "EXPIRES", "robot", "main", "2100-01-01T00:00:00Z"},
		"rb":  {"ROLE", "SUBJECTS", "org-readonly", "1"},
		"sab": {"ACCOUNT", "MEMBER", "robot", "local"},
	} {
		c.contains(c.must("", "get", kind, "-o", "wide"), want...)
		if narrow := c.must("", "get", kind); strings.Contains(narrow, "ENDPOINT") ||
			strings.Contains(narrow, "EXPIRES") || strings.Contains(narrow, "MODE") {
			t.Errorf("%s shows wide columns without -o wide:\n%s", kind, narrow)
		}
		c.contains(c.must("", "get", kind, "-o", "yaml"), "apiVersion: v1", "kind: List",
			"apiVersion: cloud.vendor.io/v1alpha1")
		c.contains(c.must("", "get", kind, "-o", "json"), `"kind": "List"`)
		c.contains(c.must("", "describe", kind), "Name:", "Namespace:", c.organization, "API Version:", "Spec:",
			"Status:", "Conditions:")
	}
	c.contains(c.must("", "get", "mc", "orders", "-o", "jsonpath={.spec.broker.resources.memory}"), "1717986918400m")
	// The cluster of the first start requests only resources that are available.
	c.must("", "wait", "mc/default", "-n", "default", "--for=condition=AsRequested", "--timeout=60s")
	c.contains(c.must("", "get", "mc", "-o", "custom-columns=NAME:.metadata.name,CPU:.spec.broker.resources.cpu"),
		"400m")
	c.contains(c.must("", "get", "mc", "--sort-by=.metadata.name", "--show-labels", "--show-kind"),
		"messagingcluster.cloud.vendor.io/orders", "<none>")
	all := c.must("", "get", "all")
	for _, kind := range []string{
		"serviceaccount", "user", "messaginginstance", "messagingcluster", "apikey",
		"rolebinding", "serviceaccountbinding",
	} {
		c.contains(all, kind+".cloud.vendor.io/")
	}
	c.contains(c.must("", "get", "mc", "-A"), "NAMESPACE", c.organization)
	c.contains(c.must("", "get", "clusterroles", "org-admin"), "PERMISSIONS", "org-admin")
	c.contains(c.must("", "get", "pool,pm", "-n", "default"), "pool.cloud.vendor.io/local",
		"poolmember.cloud.vendor.io/local")
	c.contains(c.must("", "get", "users", "--chunk-size=1", "-o", "name"), "ann@example.org")
}

// TestExplain checks that kubectl explain shows the comments of the types.
func TestExplain(t *testing.T) {
	c := in(t)
	for path, want := range map[string][]string{
		"sa":              {"KIND:       ServiceAccount", "ServiceAccount is the identity of a program"},
		"user.spec.email": {"Email is the person's e-mail address"},
		"mi.spec": {
			"availabilityMode", "zonal (the default) or regional", "poolRef", "ObjectReference",
		},
		"mc.spec.broker":               {"replicas", "<integer>", "1 to 15. The default is the number that runs"},
		"mc.spec.config.protocols":     {"enables the protocol"},
		"ak.spec.encryptionKey.pem":    {"BEGIN PUBLIC KEY"},
		"ak.spec.expirationTime":       {"Without it the key never expires"},
		"sab.spec.poolMemberRef":       {"name", "-required-"},
		"rb.spec.subjects":             {"kind", "User, ServiceAccount or IdentityPool"},
		"clusterrole.spec.permissions": {"SERVICE.RESOURCE.VERB"},
		"pool.spec":                    {"type"},
		"pm.spec":                      {"poolName"},
	} {
		c.contains(strings.Join(strings.Fields(c.must("", "explain", path)), " "), joined(want)...)
	}
	if r := c.try("", "explain", "mc.spec.nothing"); r.code == 0 || !strings.Contains(r.err, "does not exist") {
		t.Errorf("explain of a missing field: %+v, want an error with does not exist", r)
	}
}

// joined makes expected texts independent of line breaks.
func joined(texts []string) []string {
	out := make([]string, 0, len(texts))
	for _, text := range texts {
		out = append(out, strings.Join(strings.Fields(text), " "))
	}
	return out
}

// TestWatchShowsChanges checks the lines of kubectl get -w.
func TestWatchShowsChanges(t *testing.T) {
	c := in(t)
	c.must(user, "create", "-f", "-")
	c.must("", "wait", "user/ann", "--for=condition=Ready=False", "--timeout=60s")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	watch := c.command(ctx, "", "get", "users", "-w", "--output-watch-events", "-o",
		"jsonpath={.type} {.object.metadata.name} {.object.metadata.labels.n}{\"\\n\"}")
	stdout, err := watch.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	next := func(want string) {
		t.Helper()
		for lines.Scan() {
			if lines.Text() == want {
				return
			}
		}
		t.Fatalf("watch ended before %q", want)
	}
	next("ADDED ann ")
	for n := range 3 {
		c.must("", "label", "user", "ann", "--overwrite", fmt.Sprint("n=", n))
		next(fmt.Sprint("MODIFIED ann ", n))
	}
	c.must("", "delete", "user", "ann", "--timeout=60s")
	next("DELETED ann 2")
	cancel()
	_ = watch.Wait() // killed by cancel
}
