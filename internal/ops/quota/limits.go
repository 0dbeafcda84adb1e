package quota

import (
	"fmt"
	"strconv"
	"strings"

	"freshet/internal/base/errs"
)

// Resource is something that there is a limit of.
type Resource uint8

// The resources. Their names are those of the configuration's section quotas.
const (
	Clusters Resource = iota
	Instances
	Topics // partitions: a topic that is not partitioned is one
	Subscriptions
	Subjects // of the schema registry
	SchemaBytes
	StoredBytes
	RequestsPerSecond
	BytesPerSecond

	// Count is how many resources there are.
	Count
)

var names = [Count]string{
	"clusters", "instances", "topics", "subscriptions", "subjects", "schemaBytes", "storedBytes", "requestsPerSecond",
	"bytesPerSecond",
}

// String returns the name.
func (r Resource) String() string { return names[r] }

// IsRate says whether the resource is so much a second.
func (r Resource) IsRate() bool { return r == RequestsPerSecond || r == BytesPerSecond }

// IsBytes says whether the resource is counted in bytes.
func (r Resource) IsBytes() bool { return r == SchemaBytes || r == StoredBytes || r == BytesPerSecond }

// Limits has a limit for each resource; 0 is none.
type Limits [Count]int64

// over lays those limits of o that are set over l.
func (l Limits) over(o Limits) Limits {
	for r, limit := range o {
		if limit > 0 {
			l[r] = limit
		}
	}
	return l
}

// KeyPrefix begins the keys of a cluster's configuration that limit the cluster
// (docs/spec/resources.md#quotas).
const KeyPrefix = "quota."

// perCluster are the resources that a cluster can have a limit of its own for.
var perCluster = []Resource{
	Topics, Subscriptions, Subjects, SchemaBytes, StoredBytes, RequestsPerSecond,
	BytesPerSecond,
}

// ParseKey reads one key of a cluster's configuration; false for a key that is not
// about quotas.
func ParseKey(key, value string) (Resource, int64, bool, error) {
	for _, r := range perCluster {
		if key != KeyPrefix+r.String() {
			continue
		}
		n, err := parseAmount(value)
		if err != nil {
			return r, 0, true, errs.Newf(errs.Invalid,
				"%q is not a limit: write a whole number above 0, with a unit such as Ki, Mi or Gi if you like", value)
		}
		return r, n, true, nil
	}
	return 0, 0, false, nil
}

// ClusterLimits reads a cluster's configuration. What is not a limit is left
// out: it was refused when it was written.
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
