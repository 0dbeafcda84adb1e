package kubectl

import (
	"strings"
	"testing"
)

// family creates the user ann, and the user bob whose owner she is.
func family(c *client) {
	c.t.Helper()
	c.must(user, "create", "-f", "-")
	uid := c.must("", "get", "user", "ann", "-o", "jsonpath={.metadata.uid}")
	child := strings.NewReplacer("name: ann", "name: bob", "spec:", `  ownerReferences:
  - {apiVersion: cloud.vendor.io/v1alpha1, kind: User, name: ann, uid: `+uid+`}
spec:`).Replace(user)
	c.must(child, "create", "-f", "-")
}

func TestCascadeInTheBackground(t *testing.T) {
	c := in(t)
	family(c)
	c.must("", "delete", "user", "ann", "--cascade=background", "--timeout=60s")
	c.must("", "wait", "user/bob", "--for=delete", "--timeout=60s")
}

func TestCascadeOrphan(t *testing.T) {
	c := in(t)
	family(c)
	c.must("", "delete", "user", "ann", "--cascade=orphan", "--timeout=60s")
	if refs := c.must("", "get", "user", "bob", "-o", "jsonpath={.metadata.ownerReferences}"); refs != "" {
		t.Errorf("orphan still has owners %s, want none", refs)
	}
	c.must("", "delete", "user", "bob", "--timeout=60s")
}

func TestCascadeOfAnInstance(t *testing.T) {
	c := in(t)
	c.must(world, "create", "-f", "-")
	c.must("", "wait", "mi/main", "mc/orders", "--for=condition=Ready", "--timeout=60s")
	for _, cascade := range []string{"background", "orphan"} {
		if r := c.try("", "delete", "mi", "main", "--cascade="+cascade); r.code == 0 ||
			!strings.Contains(r.err, "orders") {
			t.Errorf("--cascade=%s deleted an instance with a cluster: %+v, want an error that names orders", cascade,
				r)
		}
	}
	c.must("", "delete", "mi", "main", "--cascade=foreground", "--timeout=60s")
	if r := c.try("", "get", "mc", "orders"); r.code == 0 {
		t.Errorf("cluster exists after the deletion of its instance: %s", r.out)
	}
}

func TestDeleteMany(t *testing.T) {
	c := in(t)
	for _, name := range []string{"a1", "a2", "b1"} {
		c.must(strings.NewReplacer("name: ann", "name: "+name, "team: a", "team: "+name[:1]).Replace(user),
			"create", "-f", "-")
	}
	c.contains(c.must("", "delete", "users", "-l", "team=a", "--timeout=60s"), "a1", "a2")
	c.contains(c.must("", "get", "users", "-o", "name"), "b1")
	c.must("", "delete", "users", "--all", "--timeout=60s")
	c.must("", "delete", "user", "b1", "--ignore-not-found")
	if out := c.must("", "get", "users", "-o", "name"); out != "" {
		t.Errorf("users %s exist, want none", out)
	}
	c.must(user, "create", "-f", "-")
	c.contains(c.must("", "delete", "user", "ann", "--now", "--timeout=60s"), "deleted")
	c.must(user, "create", "-f", "-")
	c.contains(c.must("", "delete", "user", "ann", "--grace-period=1", "--timeout=60s"), "deleted")
}
