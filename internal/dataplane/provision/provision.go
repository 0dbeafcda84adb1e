// Package provision contains the types that the resource API and the data plane exchange
// about a messaging cluster: what should run (Spec), and which parts of it are up (Part).
//
// It contains values only. Package dataplane runs clusters from them; the reconciler of the
// MessagingCluster kind creates them without access to an engine.
package provision

import (
	"fmt"
	"reflect"
	"strconv"
)

// Spec describes a cluster to the data plane. In an ensemble it is stored in etcd as JSON
// without tags, so its field names are part of a storage format.
type Spec struct {
	UID          string
	Organization string
	Instance     string
	Name         string
	Host         string // the host name at which it is served
	Engine       string
	Location     string // location of its pool member
	// RegistryAtRoot selects the path of the registry: the root, or /stream
	// (docs/spec/registry.md#address).
	RegistryAtRoot bool
	// Existing means that the cluster has run before: its store is opened and never
	// created.
	Existing bool
	// Stream means that Kafka clients are served.
	Stream bool
	// Copies is the number of members of an ensemble that should have a copy of each shard.
	Copies int
	// Custom is spec.config.custom of the cluster, reduced to the keys of CustomKeys.
	Custom map[string]string
	// StoredBytes limits the bytes of messages, as Custom quota.storedBytes does: the size of the
	// cluster's disks; 0 for no limit.
	StoredBytes int64
	// MemoryBytes limits the bytes of messages that are being stored; 0 for no limit.
	MemoryBytes int64
}

// Equal reports whether two specs are the same.
func (s Spec) Equal(o Spec) bool { return reflect.DeepEqual(s, o) }

// CustomKeys are the supported keys of spec.config.custom and their meaning. Other keys are
// stored and have no effect.
var CustomKeys = map[string]string{
	"registry.format": "honour the query parameter format of the schema registry as newer clients send it",

	// Limits of this cluster alone, below the remaining quota of its organization; see
	// package quota.
	"quota.topics":            "limit topics and partitions",
	"quota.subscriptions":     "limit subscriptions",
	"quota.subjects":          "limit subjects of the schema registry",
	"quota.schemaBytes":       "limit the bytes of schemas",
	"quota.storedBytes":       "limit the bytes of messages",
	"quota.clientStateBytes":  "limit the memory of consumer groups, committed offsets and producers",
	"quota.tenantStateBytes":  "limit that memory for each tenant",
	"quota.accountStateBytes": "limit that memory for each account",
	"quota.requestsPerSecond": "limit the rate of calls",
	"quota.bytesPerSecond":    "limit the rate of bytes in and out",

	CustomShards: "number of shards of the cluster in an ensemble; it cannot be changed",
}

// CustomShards is the key of spec.config.custom for the number of shards of a cluster,
// at most MaxShards.
const (
	CustomShards = "shards"
	MaxShards    = 64
)

// ParseShards parses the value of CustomShards.
func ParseShards(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MaxShards || strconv.Itoa(n) != text {
		return 0, fmt.Errorf("must be a whole number between 1 and %d", MaxShards)
	}
	return n, nil
}

// Shard describes a shard of a cluster in an ensemble, as the reporting member sees it.
type Shard struct {
	Number int
	Owner  string // "" for none
	Epoch  uint64
	Log    uint64 // last sequence of its log
	Copies []Copy
	// Problem is why this member's copy is unusable; "" when it is usable.
	Problem string
}

// Lost returns the members whose copies do not match the shard's log, so that an operator
// has to act.
func (s *Shard) Lost() (members []string) {
	for _, c := range s.Copies {
		if c.Lost {
			members = append(members, c.Member)
		}
	}
	return members
}

// DefaultCopies is the number of copies of each shard in an ensemble, unless the cluster requests more or the
// ensemble has fewer members.
const DefaultCopies = 3

// WantedCopies returns the number of copies of each shard for the storage replicas of a cluster's spec. A
// smaller number than DefaultCopies is what ran when the cluster was created, for example on a single server. It
// does not limit the copies in an ensemble that has more members now.
func WantedCopies(replicas *int32) int {
	if replicas == nil {
		return DefaultCopies
	}
	return max(int(*replicas), DefaultCopies)
}

// Copy is a member's copy of a shard.
type Copy struct {
	Member string
	Live   bool
	Lag    uint64 // messages of the log that it had not applied at its last report
	Lost   bool   // it does not match the log
	// Problem is why it is unusable; "" when it is usable.
	Problem string
}

// Replication describes how safely an ensemble stores the data of a cluster. Its texts name members
// and parts of the cluster, but no files.
type Replication struct {
	// Known is false on a single server, and before the members have reported.
	Known bool
	// Streams is the number of the cluster's logs and journals, with the meta layer of the log;
	// Replicas is the number of replicas that each should have.
	Streams, Replicas int
	// NoMajority are the streams that accept nothing, for example "log of shard 3".
	NoMajority []string
	// Missing are the replicas that are missing, Damaged the damaged parts that are being replaced,
	// for example "log of shard 3 on member b".
	Missing, Damaged []string
	// Differing are the copies whose contents differ, and no majority decides which are right.
	Differing []string
	// Failing are the members that cannot serve the cluster.
	Failing []string
}

// Part is a part of a cluster that is started separately.
type Part string

// The parts of a cluster, in the order in which they start.
const (
	Storage  Part = "storage"  // the engine's store is open
	Metadata Part = "metadata" // the registry has replayed its journal
	Broker   Part = "broker"   // topics and subscriptions are known
	Proxy    Part = "proxy"    // requests find the cluster
)
