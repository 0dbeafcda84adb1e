package quota

import (
	"fmt"
	"strconv"
	"strings"

	"freshet/internal/base/errs"
)

// Resource is a resource with a limit.
type Resource uint8

// The resources. Their names are the keys of the configuration's section quotas.
const (
	Clusters Resource = iota
	Instances
	Topics // counts partitions; a topic that is not partitioned counts as one
	Subscriptions
	Subjects // of the schema registry
	SchemaBytes
	StoredBytes
	RequestsPerSecond
	BytesPerSecond
	ClientStateBytes  // consumer groups, committed offsets and producers of Kafka clients
	TenantStateBytes  // those of one tenant of a cluster
	AccountStateBytes // those of one account in a cluster

	// Count is the number of resources.
	Count
)

var names = [Count]string{
	"clusters", "instances", "topics", "subscriptions", "subjects", "schemaBytes", "storedBytes", "requestsPerSecond",
	"bytesPerSecond", "clientStateBytes", "tenantStateBytes", "accountStateBytes",
}

// String returns the name.
func (r Resource) String() string { return names[r] }

// IsRate reports whether the resource is a rate per second.
func (r Resource) IsRate() bool { return r == RequestsPerSecond || r == BytesPerSecond }

// IsBytes reports whether the resource is counted in bytes.
func (r Resource) IsBytes() bool {
	return r == SchemaBytes || r == StoredBytes || r == BytesPerSecond || r.isState()
}

// isState reports whether the resource is state that Kafka clients create.
func (r Resource) isState() bool {
	return r == ClientStateBytes || r == TenantStateBytes || r == AccountStateBytes
}

// Limits has a limit for each resource; 0 means no limit.
type Limits [Count]int64

// withOverrides returns l with the limits that are set in o.
func (l Limits) withOverrides(o Limits) Limits {
	for r, limit := range o {
		if limit > 0 {
			l[r] = limit
		}
	}
	return l
}

// KeyPrefix is the prefix of the configuration keys that limit a cluster
// (docs/spec/resources.md#quotas).
const KeyPrefix = "quota."

// perCluster are the resources that can be limited per cluster.
var perCluster = []Resource{
	Topics, Subscriptions, Subjects, SchemaBytes, StoredBytes, RequestsPerSecond,
	BytesPerSecond, ClientStateBytes, TenantStateBytes, AccountStateBytes,
}

// ParseKey parses one key of a cluster's configuration. It returns false for a key that
// is not a quota.
func ParseKey(key, value string) (Resource, int64, bool, error) {
	for _, r := range perCluster {
		if key != KeyPrefix+r.String() {
			continue
		}
		n, err := parseAmount(value)
		if err != nil {
			return r, 0, true, errs.Newf(errs.Invalid,
				"%q is not a valid limit; use an integer above 0, optionally with a unit such as Ki, Mi or Gi", value)
		}
		return r, n, true, nil
	}
	return 0, 0, false, nil
}

// ClusterLimits returns the limits in a cluster's configuration. It ignores invalid
// values; they were rejected when the configuration was written.
func ClusterLimits(custom map[string]string) Limits {
	var l Limits
	for key, value := range custom {
		if r, n, ok, err := ParseKey(key, value); ok && err == nil {
			l[r] = n
		}
	}
	return l
}

var units = []struct {
	suffix string
	factor int64
}{{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"Ti", 1 << 40}}

func parseAmount(text string) (int64, error) {
	factor := int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			text, factor = rest, u.factor
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > 1<<62/factor {
		return 0, fmt.Errorf("%q is out of range", text)
	}
	return n * factor, nil
}
