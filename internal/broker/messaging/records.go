package messaging

import (
	"encoding/json"
	"fmt"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/storage/engine"
)

// recordFormat is written into every record. A record of a later format is
// refused, so that an old binary never guesses at new data.
const recordFormat = 1

// The operations of the catalogue's journal.
const (
	opSeed            = "seed"             // the first record: public/default
	opTenant          = "tenant"           // create or replace
	opDropTenant      = "drop-tenant"      //
	opNamespace       = "namespace"        // create or replace policies
	opDropNamespace   = "drop-namespace"   //
	opCreateTopic     = "create-topic"     // its position makes the topic's id
	opTopic           = "topic"            // replace what can change of a topic
	opDropTopic       = "drop-topic"       //
	opSchema          = "schema"           // append a version, or a tombstone
	opDropSchemas     = "drop-schemas"     // forget every version
	opConfigured      = "configured"       // the engine knows the topic's rules
	opConfiguredSpace = "configured-space" // the engine knows them for every topic of the namespace
)

// record is one line of the journal, and of a snapshot.
type record struct {
	Format   int            `json:"f"`
	Op       string         `json:"op"`
	Name     string         `json:"name,omitempty"` // tenant/namespace or tenant/namespace/topic
	ID       engine.TopicID `json:"id,omitempty"`
	At       int64          `json:"at,omitempty"` // epoch milliseconds
	Position uint64         `json:"position,omitempty"`

	Tenant   *Tenant        `json:"tenant,omitempty"`
	Policies *Policies      `json:"policies,omitempty"`
	Topic    *topicRecord   `json:"topic,omitempty"`
	Schema   *schemaVersion `json:"schema,omitempty"`
	History  *schemaHistory `json:"history,omitempty"` // snapshots only
	Pending  uint64         `json:"pending,omitempty"` // snapshots only
	Seeded   bool           `json:"seeded,omitempty"`  // snapshots only
}

// topicRecord is what can change of a topic.
type topicRecord struct {
	Partitions int32     `json:"partitions,omitempty"`
	Terminated bool      `json:"terminated,omitempty"`
	Policies   *Policies `json:"policies,omitempty"`
	// Shards is set in a new topic's record when its cluster has shards, Shard when
	// the topic is to be in a certain one.
	Shards int  `json:"shards,omitempty"`
	Shard  *int `json:"shard,omitempty"`
}

// newID is the id of a topic that the record at a position makes. Where there are
// shards it is the position times their number, plus the shard: so the id says where
// the topic is, and none is ever used twice.
func (r *topicRecord) newID(position uint64) engine.TopicID {
	n := uint64(r.Shards) //nolint:gosec // never negative
	if n == 0 {
		return engine.TopicID(position)
	}
	shard := position % n
	if r.Shard != nil && *r.Shard >= 0 {
		shard = uint64(*r.Shard) % n
	}
	return engine.TopicID(position*n + shard)
}

func (r record) encode() []byte {
	r.Format = recordFormat
	b, err := json.Marshal(r)
	if err != nil {
		// Only values of our own types are in it, all of which marshal.
		panic(fmt.Sprintf("messaging: encoding a record: %v", err))
	}
	return b
}

func decodeRecord(b []byte) (record, error) {
	var r record
	if err := json.Unmarshal(b, &r); err != nil {
		return r, errs.Newf(errs.Internal, "decoding a catalogue record: %w", err)
	}
	if r.Format > recordFormat {
		return r, fmt.Errorf("catalogue record of format %d: %w", r.Format, engine.ErrNewerFormat)
	}
	return r, nil
}

// path is a topic's name inside records. The local name may hold slashes.
func path(t names.Topic) string {
	return t.Namespace.Tenant + "/" + t.Namespace.Name + "/" + t.Local
}

func topicOfPath(s string) (names.Topic, error) {
	parts := strings.SplitN(s, "/", 3)
	if len(parts) != 3 {
		return names.Topic{}, errs.Newf(errs.Internal, "topic path %q has too few parts", s)
	}
	return names.Topic{Namespace: names.Namespace{Tenant: parts[0], Name: parts[1]}, Local: parts[2]}, nil
}

func namespaceOfPath(s string) (names.Namespace, error) {
	tenant, name, ok := strings.Cut(s, "/")
	if !ok {
		return names.Namespace{}, errs.Newf(errs.Internal, "namespace path %q has too few parts", s)
	}
	return names.Namespace{Tenant: tenant, Name: name}, nil
}
