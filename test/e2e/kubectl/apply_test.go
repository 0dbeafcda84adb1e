package kubectl

import (
	"strings"
	"testing"
)

// sized is a cluster whose sizes and times are written in a shorter form than the one that
// the server returns, with one protocol off and one with settings.
const sized = `apiVersion: cloud.vendor.io/v1alpha1
kind: MessagingCluster
metadata:
  name: sized
spec:
  instanceName: none
  location: local
  broker:
    resources: {cpu: 0.4, memory: 1.6Gi}
  storage:
    resources: {cpu: "0.5", memory: 1.6Gi, ledgerDisk: 0.5Ti, journalDisk: 1.5Gi}
  maintenanceWindow:
    window: {startTime: "22:00", duration: 3h}
  config:
    protocols:
      mqtt: null
      stream:
        listener: {port: 9093, ratio: 1.50}
`

// TestApplyAgain checks that an applied manifest can be applied and compared again, also by
// another field manager, without a difference.
func TestApplyAgain(t *testing.T) {
	c := in(t)
	version := func() string {
		return c.must("", "get", "mc", "sized", "-o",
			"jsonpath={.metadata.generation} {.metadata.managedFields[*].manager}")
	}
	c.must(sized, "apply", "--server-side", "--field-manager=one", "-f", "-")
	c.contains(c.must("", "get", "mc", "sized", "-o",
		"jsonpath={.spec.broker.resources.memory} {.spec.config.protocols}"),
		"1717986918400m", `{"stream":{"listener":{"port":9093,"ratio":1.5}}}`)
	c.must("", "wait", "mc/sized", `--for=jsonpath={.status.conditions[?(@.type=="Ready")].status}=False`,
		"--timeout=60s")
	before := version()
	c.must(sized, "apply", "--server-side", "--field-manager=one", "-f", "-")
	if now := version(); now != before {
		t.Errorf("unchanged manifest changed %[2]q to %[1]q", now, before)
	}
	for _, args := range [][]string{
		{"--server-side", "--field-manager=one"},
		{"--server-side", "--field-manager=two"},
		nil,
	} {
		if r := c.try(sized, append([]string{"diff", "-f", "-"}, args...)...); r.code != 0 || r.out != "" {
			t.Errorf("diff %v of the applied manifest: %+v, want no output", args, r)
		}
	}
	if r := c.try(sized, "apply", "--server-side", "--field-manager=two", "-f", "-"); r.code != 0 {
		t.Errorf("same values by another manager: %+v, want no conflict", r)
	}
	c.contains(version(), "one", "two")
	other := strings.Replace(sized, "memory: 1.6Gi}\n  storage", "memory: 1.7Gi}\n  storage", 1)
	if r := c.try(other, "apply", "--server-side", "--field-manager=two", "-f", "-"); r.code == 0 ||
		!strings.Contains(r.err, ".spec.broker.resources.memory") {
		t.Errorf("another value by another manager: %+v, want a conflict", r)
	}
	c.must("", "delete", "mc", "sized")

	// kubectl's client-side apply, with its annotation.
	c.must(sized, "apply", "-f", "-")
	for range 2 {
		c.must(sized, "apply", "-f", "-")
		if r := c.try(sized, "diff", "-f", "-"); r.code != 0 || r.out != "" {
			t.Errorf("diff after a client-side apply: %+v, want no output", r)
		}
	}
	c.contains(c.must("", "get", "mc", "sized", "-o", "jsonpath={.metadata.generation} {.spec.config.protocols}"), "1 ",
		`{"stream":{`)
}
