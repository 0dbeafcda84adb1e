package messaging

import (
	"encoding/json"
	"fmt"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/storage/engine"
)

// recordFormat is written into every record. Decoding rejects records of a later format, so that an
// old binary never misinterprets new data.
const recordFormat = 1

// The operations of the catalogue's journal.
const (
	opSeed                = "seed"             // the first record: public/default
	opTenant              = "tenant"           // create or replace
	opDropTenant          = "drop-tenant"      //
	opNamespace           = "namespace"        // create or replace policies
	opDropNamespace       = "drop-namespace"   //
	opCreateTopic         = "create-topic"     // the topic's id is derived from its position
	opTopic               = "topic"            // replace the mutable part of a topic
	opDropTopic           = "drop-topic"       //
	opSchema              = "schema"           // append a version, or a tombstone
	opDropSchemas         = "drop-schemas"     // remove every version
	opConfigured          = "configured"       // the engine has the topic's rules
	opGroup               = "group"            // replace or remove the configurations of a share group
	opConfiguredNamespace = "configured-space" // the engine has the rules of every topic of the namespace
)

// record is one entry of the journal, and one line of a snapshot.
type record struct {
	Format   int            `json:"f"`
	Op       string         `json:"op"`
	Name     string         `json:"name,omitempty"` // tenant/namespace or tenant/namespace/topic
	ID       engine.TopicID `json:"id,omitempty"`
	At       int64          `json:"at,omitempty"` // epoch milliseconds
	Position uint64         `json:"position,omitempty"`

	Tenant     *Tenant        `json:"tenant,omitempty"`
	Policies   *Policies      `json:"policies,omitempty"`
	Topic      *topicRecord   `json:"topic,omitempty"`
	ShareGroup *groupRecord   `json:"shareGroup,omitempty"`
	Schema     *schemaVersion `json:"schema,omitempty"`
	History    *schemaHistory `json:"history,omitempty"` // snapshots only
	Pending    uint64         `json:"pending,omitempty"` // snapshots only
	Seeded     bool           `json:"seeded,omitempty"`  // snapshots only
}

// topicRecord is the mutable part of a topic.
type topicRecord struct {
	Partitions int32     `json:"partitions,omitempty"`
	Terminated bool      `json:"terminated,omitempty"`
	Policies   *Policies `json:"policies,omitempty"`
	// Shards is set in a new topic's record when the cluster has shards. Shard is set when the
	// topic must be in a certain shard.
	Shards int  `json:"shards,omitempty"`
	Shard  *int `json:"shard,omitempty"`
}

// newID returns the id of the topic that the record at a journal position creates. With shards the
// id is the position times their number plus the shard: the id determines the shard and is unique.
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
		// The record contains only types of this package, all of which can be encoded.
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

// path returns a topic's name as records contain it. The local name may contain slashes.
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
