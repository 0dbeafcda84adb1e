package messaging

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/base/workpool"
	"freshet/internal/ops/quota"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/statemachine"
)

// Schema is the definition of a topic's payloads.
type Schema struct {
	Type       SchemaType        `json:"type"`
	Text       string            `json:"text,omitempty"`
	Properties map[string]string `json:"properties,omitempty"`
}

// SchemaVersion is a current or former version of a topic's schema.
type SchemaVersion struct {
	Schema
	Version int64
	At      int64 // epoch milliseconds
}

// schemaVersion is a version in the catalogue, or a tombstone: the schema was deleted at that
// version.
type schemaVersion struct {
	Schema
	Version int64 `json:"version"`
	At      int64 `json:"at"`
	Deleted bool  `json:"deleted,omitempty"`

	sum [sha256.Size]byte // hash of the definition, see Schema.sum
}

func (v *schemaVersion) public() SchemaVersion {
	return SchemaVersion{Schema: v.Schema, Version: v.Version, At: v.At}
}

// schemaHistory is every version of a topic's schema. Version numbers are never reused, because
// stored messages refer to them. A nil history is empty.
type schemaHistory struct {
	Next     int64            `json:"next"`
	Versions []*schemaVersion `json:"versions,omitempty"`
}

func (h *schemaHistory) with(v *schemaVersion) *schemaHistory {
	if h == nil {
		h = &schemaHistory{}
	}
	v.Version = h.Next
	v.sum = v.Schema.sum()
	return &schemaHistory{
		Next:     h.Next + 1,
		Versions: append(h.Versions[:len(h.Versions):len(h.Versions)], v),
	}
}

// size returns the bytes of all definitions.
func (h *schemaHistory) size() (n int64) {
	if h == nil {
		return 0
	}
	for _, v := range h.Versions {
		n += v.Schema.size()
	}
	return n
}

func (s *Schema) size() int64 {
	n := len(s.Text)
	for key, value := range s.Properties {
		n += len(key) + len(value)
	}
	return int64(n)
}

func (h *schemaHistory) withoutVersions() *schemaHistory {
	if h == nil {
		return nil
	}
	return &schemaHistory{Next: h.Next}
}

// current returns the versions after the last deletion.
func (h *schemaHistory) current() []*schemaVersion {
	if h == nil {
		return nil
	}
	for i := len(h.Versions) - 1; i >= 0; i-- {
		if h.Versions[i].Deleted {
			return h.Versions[i+1:]
		}
	}
	return h.Versions
}

func (h *schemaHistory) latest() (*schemaVersion, bool) {
	if h == nil || len(h.Versions) == 0 {
		return nil, false
	}
	v := h.Versions[len(h.Versions)-1]
	return v, !v.Deleted
}

// version returns any version, also one before a deletion, so that old messages stay readable.
func (h *schemaHistory) version(n int64) (*schemaVersion, bool) {
	if h == nil || n < 0 {
		return nil, false
	}
	for i := len(h.Versions) - 1; i >= 0; i-- {
		if v := h.Versions[i]; v.Version == n {
			return v, !v.Deleted
		}
	}
	return nil, false
}

// versionFor returns the version for a new message: the version that the producer names, or the latest;
// nil when the topic has no schema. Producers cannot use deleted versions.
func (h *schemaHistory) versionFor(requested int64) (*schemaVersion, error) {
	if requested == NoSchema {
		v, ok := h.latest()
		if !ok {
			return nil, nil
		}
		return v, nil
	}
	versions := h.current()
	for i := len(versions) - 1; i >= 0; i-- {
		if versions[i].Version == requested {
			return versions[i], nil
		}
	}
	return nil, errs.Newf(errs.NotFound, "%w: topic has no schema version %d", ErrNoSchema, requested)
}

// TopicSchemas is the part of a broker that manages the schemas of topics. The catalogue stores them.
type TopicSchemas struct {
	catalogue *Catalogue
	limits    *Limits
	quota     *quota.Cluster
	pool      *workpool.Pool
}

// Add adds a version of a topic's schema and returns its number. For a definition that the
// topic already has it returns the existing number. In a namespace that does not allow updates only
// an administrator may add versions.
func (ts *TopicSchemas) Add(ctx context.Context, name names.Topic, s Schema, administrator bool) (int64, error) {
	job := ts.pool.Job(ctx)
	if err := ts.checkSchema(job, &s); err != nil {
		return NoSchema, err
	}
	t, err := ts.catalogue.autoCreate(ctx, name)
	if err != nil {
		return NoSchema, err
	}
	for range addAttempts {
		version, err := ts.tryAddSchema(ctx, job, t.id, s, administrator)
		if !errors.Is(err, errSchemaChanged) {
			return version, err
		}
	}
	return NoSchema, statemachine.ErrContended
}

const addAttempts = 16

// errSchemaChanged means that a topic's schema changed during the comparison.
var errSchemaChanged = errors.New("schema changed")

// tryAddSchema checks compatibility before the catalogue update, so that other updates do not wait
// for the check.
func (ts *TopicSchemas) tryAddSchema(ctx context.Context, job *workpool.Job, id engine.TopicID, s Schema,
	administrator bool,
) (int64, error) {
	c, err := ts.catalogue.state.Fresh(ctx)
	if err != nil {
		return NoSchema, err
	}
	t, ok := c.byID.Get(id)
	if !ok {
		return NoSchema, ErrNoTopic
	}
	sum := s.sum()
	compared, strategy := t.schemas, c.rules(t, ts.limits).strategy
	if v := find(compared.current(), s.Type, sum); v != nil {
		return v.Version, nil
	}
	if err := ts.mayAdd(c, t, administrator); err != nil {
		return NoSchema, err
	}
	if err := compatible(job, &s, compared.current(), strategy); err != nil {
		return NoSchema, err
	}
	reservation, err := ts.quota.Reserve(ctx, quota.SchemaBytes, s.size())
	if err != nil {
		return NoSchema, err
	}
	defer reservation.Release()
	version, at := int64(0), now()
	_, err = ts.catalogue.state.Update(context.WithoutCancel(ctx), func(c *catalogueState) ([][]byte, error) {
		t, ok := c.byID.Get(id)
		if !ok {
			return nil, ErrNoTopic
		}
		if t.schemas != compared || c.rules(t, ts.limits).strategy != strategy {
			return nil, errSchemaChanged
		}
		if version = 0; t.schemas != nil {
			version = t.schemas.Next
		}
		return [][]byte{record{Op: opSchema, ID: id, Schema: &schemaVersion{Schema: s, At: at}}.encode()}, nil
	})
	if err != nil {
		return NoSchema, err
	}
	return version, nil
}

func (ts *TopicSchemas) mayAdd(c *catalogueState, t *topic, administrator bool) error {
	if ns, ok := c.namespace(t.name.Namespace); ok && !administrator {
		if !valueOr(ns.policies.AllowSchemaUpdates, defaults.AllowSchemaUpdates) {
			return ErrSchemaUpdate
		}
	}
	if t.schemas != nil && len(t.schemas.Versions) >= ts.limits.SchemaCount {
		return errs.Newf(errs.TooLarge, "%w: topic has %d schema versions", ErrTooMuchData, ts.limits.SchemaCount)
	}
	return nil
}

// find returns the version with the given definition, or nil.
func find(versions []*schemaVersion, kind SchemaType, sum [sha256.Size]byte) *schemaVersion {
	for i := len(versions) - 1; i >= 0; i-- {
		if v := versions[i]; v.Type == kind && v.sum == sum {
			return v
		}
	}
	return nil
}

// sum returns a hash of the meaning of a definition. White space and the order of JSON members do
// not matter; of the properties only those that define a KEY_VALUE schema do.
func (s *Schema) sum() [sha256.Size]byte {
	text := s.Text
	if s.Type.structured() || s.Type == SchemaKeyValue || s.Type == SchemaProtobufNative {
		text = sortedJSON(text)
	}
	if s.Type == SchemaKeyValue {
		for _, p := range [...]string{propertyKeyType, propertyValueType, propertyEncoding} {
			text += "\x00" + s.Properties[p]
		}
	}
	return sha256.Sum256([]byte(text))
}

func sortedJSON(text string) string {
	in := json.NewDecoder(strings.NewReader(text))
	in.UseNumber()
	var v any
	if err := in.Decode(&v); err != nil {
		return text
	}
	b, err := json.Marshal(v) // sorts the members
	if err != nil {
		return text
	}
	return string(b)
}

// Latest returns the version that new messages get.
func (ts *TopicSchemas) Latest(ctx context.Context, name names.Topic) (SchemaVersion, error) {
	t, err := ts.catalogue.fresh(ctx, name)
	if err != nil {
		return SchemaVersion{}, err
	}
	v, ok := t.schemas.latest()
	switch {
	case ok:
		return v.public(), nil
	case v != nil:
		return SchemaVersion{}, errs.Newf(errs.NotFound, "%w: schema was deleted", ErrNoSchema)
	}
	return SchemaVersion{}, ErrNoSchema
}

// ByVersion returns one version, also after the schema was deleted.
func (ts *TopicSchemas) ByVersion(ctx context.Context, name names.Topic, version int64) (SchemaVersion, error) {
	t, err := ts.catalogue.fresh(ctx, name)
	if err != nil {
		return SchemaVersion{}, err
	}
	v, ok := t.schemas.version(version)
	if !ok {
		return SchemaVersion{}, ErrNoSchema
	}
	return v.public(), nil
}

// List returns the current versions of a topic's schema, oldest first.
func (ts *TopicSchemas) List(ctx context.Context, name names.Topic) ([]SchemaVersion, error) {
	t, err := ts.catalogue.fresh(ctx, name)
	if err != nil {
		return nil, err
	}
	list := []SchemaVersion{}
	for _, v := range t.schemas.current() {
		list = append(list, v.public())
	}
	return list, nil
}

// Find returns the number of the current version with this definition.
func (ts *TopicSchemas) Find(ctx context.Context, name names.Topic, s Schema) (int64, error) {
	t, err := ts.catalogue.fresh(ctx, name)
	if err != nil {
		return NoSchema, err
	}
	v := find(t.schemas.current(), s.Type, s.sum())
	if v == nil {
		return NoSchema, ErrNoSchema
	}
	return v.Version, nil
}

// Check reports whether Add would accept a definition, and the strategy it applies. It
// returns ErrIncompatibleSchema with the reason if not.
func (ts *TopicSchemas) Check(ctx context.Context, name names.Topic, s Schema) (Strategy, error) {
	job := ts.pool.Job(ctx)
	if err := ts.checkSchema(job, &s); err != nil {
		return "", err
	}
	t, err := ts.catalogue.fresh(ctx, name)
	if err != nil {
		return "", err
	}
	strategy := ts.catalogue.state.View().rules(t.topic, ts.limits).strategy
	if find(t.schemas.current(), s.Type, s.sum()) != nil {
		return strategy, nil
	}
	return strategy, compatible(job, &s, t.schemas.current(), strategy)
}

// Delete appends a tombstone to a topic's schema and returns its version. With force it
// removes every version.
func (ts *TopicSchemas) Delete(ctx context.Context, name names.Topic, force bool) (int64, error) {
	var version int64
	at := now()
	_, err := ts.catalogue.state.Update(ctx, func(c *catalogueState) ([][]byte, error) {
		t, ok := lookup(c, name)
		if !ok {
			return nil, missingError(c, name)
		}
		if _, ok := t.schemas.latest(); !ok {
			return nil, ErrNoSchema
		}
		version = t.schemas.Next
		if force {
			version--
			return [][]byte{record{Op: opDropSchemas, ID: t.id}.encode()}, nil
		}
		return [][]byte{record{Op: opSchema, ID: t.id, Schema: &schemaVersion{At: at, Deleted: true}}.encode()}, nil
	})
	if err != nil {
		return NoSchema, err
	}
	return version, nil
}
