// Package provision is what the resource API and the data plane say to each
// other about a messaging cluster: what should run (Spec), and which parts of it
// are up (Part).
//
// It holds these values only. dataplane runs clusters by them; the reconciler of
// the MessagingCluster kind writes them down without reaching an engine.
package provision

import (
	"fmt"
	"reflect"
	"strconv"
)

// Spec is what the data plane has to know of a cluster.
type Spec struct {
	UID          string
	Organization string
	Instance     string
	Name         string
	Host         string // the name it answers at
	Engine       string
	Location     string // where it is, as its pool member says
	// RegistryAtRoot says where the registry answers: at the root, or under
	// /stream (docs/spec/registry.md#address).
	RegistryAtRoot bool
	// Existing says that the cluster has run before: its store is opened and never
	// made anew.
	Existing bool
	// Stream says that clients of the stream protocol are served.
	Stream bool
	// Copies is how many members of a group are to have a copy of each shard.
	Copies int
	// Custom is spec.config.custom of the cluster: only keys of CustomKeys.
	Custom map[string]string
}

// Equal says whether two specs ask for the same.
func (s Spec) Equal(o Spec) bool { return reflect.DeepEqual(s, o) }

// CustomKeys are the keys of spec.config.custom that have a meaning, with what
// they do. Others are kept and do nothing.
var CustomKeys = map[string]string{
	"registry.format": "honour the query parameter format of the schema registry as newer clients send it",

	// Limits of this cluster alone, below what its organization has left; see
	// package quota.
	"quota.topics":            "limit topics and partitions",
	"quota.subscriptions":     "limit subscriptions",
	"quota.subjects":          "limit subjects of the schema registry",
	"quota.schemaBytes":       "limit the bytes of schemas",
	"quota.storedBytes":       "limit the bytes of messages",
	"quota.requestsPerSecond": "limit the rate of calls",
	"quota.bytesPerSecond":    "limit the rate of bytes in and out",

	CustomShards: "number of shards of the cluster in a group of members; it cannot be changed",
}

// CustomShards is the key of spec.config.custom that says how many shards a cluster
// has, MaxShards at most.
const (
	CustomShards = "shards"
	MaxShards    = 64
)

// ParseShards reads the value of CustomShards.
func ParseShards(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MaxShards || strconv.Itoa(n) != text {
		return 0, fmt.Errorf("must be a whole number between 1 and %d", MaxShards)
	}
	return n, nil
}

// Shard is a shard of a cluster in a group, as the member that says it knows it.
type Shard struct {
	Number int
	Owner  string // "" for none
	Epoch  uint64
	Log    uint64 // the last number of its log
	Copies []Copy
	// Problem says why this member's copy cannot be used; "" when it can.
	Problem string
}

// Lost lists the members whose copies do not belong to the shard's log, so that it
// takes an operator to go on.
func (s *Shard) Lost() (members []string) {
	for _, c := range s.Copies {
		if c.Lost {
			members = append(members, c.Member)
		}
	}
	return members
}

// Copy is what a member has of a shard.
type Copy struct {
	Member string
	Live   bool
	Lag    uint64 // of the log that it had not applied when it last said so
	Lost   bool   // it and the log do not belong together
	// Problem says why it cannot be used; "" when it can.
	Problem string
}

// Part is a piece of a cluster that comes up by itself.
type Part string

// The parts of a cluster, in the order in which they come up.
const (
	Storage  Part = "storage"  // the engine's store is open
	Metadata Part = "metadata" // the registry has replayed its journal
	Broker   Part = "broker"   // topics and subscriptions are known
	Proxy    Part = "proxy"    // requests find the cluster
)
