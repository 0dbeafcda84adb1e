package schemas

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/tidwall/btree"
)

// state is the whole registry at one position of the journal. A published state is
// never changed: a clone shares its nodes and copies a node before it changes it.
type state struct {
	schemas    *btree.Map[int32, *Schema]
	subjects   *btree.Map[string, *subject]
	identities *btree.BTreeG[identityKey] // the ids that have a content
	usages     *btree.BTreeG[usage]       // the versions that have an id
	referrers  *btree.BTreeG[referrer]    // the ids that refer to a version

	lastID int32 // the highest id that was ever assigned; no id is assigned twice
	mode   Mode
	epoch  uint64 // number of hard deletions and replacements; part of parseKey
	counts Counts
	bytes  int64 // of the distinct schemas
}

// subject is one subject. It is immutable, except that versions of newer states may
// be appended to its array.
type subject struct {
	name     string
	level    Level          // 0 when never set
	versions []versionEntry // ascending; may share its array with longer slices of newer states
	active   int
}

type versionEntry struct {
	schema  *Schema
	at      int64 // epoch milliseconds of the registration
	number  int32
	deleted bool
}

type identityKey struct {
	sum identity
	id  int32
}

type usage struct {
	id      int32
	subject string
	version int32
	deleted bool // not part of the order
}

type referrer struct {
	subject string // subject and version are the version that is referred to
	version int32
	id      int32 // the schema that refers to it
}

// Counts has the sizes of a registry. Arrays are indexed by schema language.
type Counts struct {
	Schemas         [Protobuf + 1]int // distinct ids
	ActiveVersions  [Protobuf + 1]int
	DeletedVersions [Protobuf + 1]int
	Subjects        int // with at least one active version
	DeletedSubjects int // with soft-deleted versions only
}

func newState() *state {
	none := btree.Options{NoLocks: true}
	return &state{
		schemas:  new(btree.Map[int32, *Schema]),
		subjects: new(btree.Map[string, *subject]),
		identities: btree.NewBTreeGOptions(func(a, b identityKey) bool {
			return cmp.Or(bytes.Compare(a.sum[:], b.sum[:]), cmp.Compare(a.id, b.id)) < 0
		}, none),
		usages: btree.NewBTreeGOptions(func(a, b usage) bool {
			return cmp.Or(cmp.Compare(a.id, b.id), strings.Compare(a.subject, b.subject),
				cmp.Compare(a.version, b.version)) < 0
		}, none),
		referrers: btree.NewBTreeGOptions(func(a, b referrer) bool {
			return cmp.Or(strings.Compare(a.subject, b.subject), cmp.Compare(a.version, b.version),
				cmp.Compare(a.id, b.id)) < 0
		}, none),
		mode: ReadWrite,
	}
}

// Clone implements statemachine.State.
func (s *state) Clone() *state {
	c := *s
	c.schemas = s.schemas.Copy()
	c.subjects = s.subjects.Copy()
	c.identities = s.identities.Copy()
	c.usages = s.usages.Copy()
	c.referrers = s.referrers.Copy()
	return &c
}

// find returns the index of a version, and whether the subject has the version.
func (s *subject) find(number int32) (int, bool) {
	return slices.BinarySearchFunc(s.versions, number, func(e versionEntry, n int32) int {
		return cmp.Compare(e.number, n)
	})
}

// latest returns the highest active version.
func (s *subject) latest() (versionEntry, bool) {
	for _, e := range slices.Backward(s.versions) {
		if !e.deleted {
			return e, true
		}
	}
	return versionEntry{}, false
}

// entry returns a version. It returns a soft-deleted version only if deleted is set.
// Latest is always the highest active version.
func (s *subject) entry(v VersionID, deleted bool) (versionEntry, bool) {
	if v == Latest {
		return s.latest()
	}
	i, ok := s.find(int32(v))
	if !ok || (s.versions[i].deleted && !deleted) {
		return versionEntry{}, false
	}
	return s.versions[i], true
}

// next returns the number of the next version.
func (s *subject) next() int32 {
	if s == nil || len(s.versions) == 0 {
		return 1
	}
	return s.versions[len(s.versions)-1].number + 1
}

func (s *subject) version(e versionEntry) Version {
	return Version{Subject: s.name, Version: e.number, Deleted: e.deleted, Schema: e.schema}
}

// visible returns the subject if it has an active version, or, if deleted is set,
// any version.
func (s *state) visible(name string, deleted bool) (*subject, bool) {
	sub, ok := s.subjects.Get(name)
	if !ok || len(sub.versions) == 0 || (sub.active == 0 && !deleted) {
		return nil, false
	}
	return sub, true
}

// version returns a version, or an error that the subject or the version does not
// exist.
func (s *state) version(name string, v VersionID, deleted bool) (Version, error) {
	sub, ok := s.visible(name, deleted)
	if !ok {
		return Version{}, subjectNotFound(name)
	}
	e, ok := sub.entry(v, deleted)
	if !ok {
		return Version{}, versionNotFound(v)
	}
	return sub.version(e), nil
}

// level returns the level of a subject, or the default.
func (s *state) level(name string) Level {
	if sub, ok := s.subjects.Get(name); ok && sub.level != 0 {
		return sub.level
	}
	return DefaultLevel
}

// idsOf returns the schemas that have this content, in ascending order of their
// ids. Only an import can create more than one.
func (s *state) idsOf(sum identity) []*Schema {
	var found []*Schema
	s.identities.Ascend(identityKey{sum: sum}, func(k identityKey) bool {
		if k.sum != sum {
			return false
		}
		if schema, ok := s.schemas.Get(k.id); ok {
			found = append(found, schema)
		}
		return true
	})
	return found
}

// versionWith returns the version of the subject that has one of the schemas: the
// highest active version, or else, if deleted is set, the highest soft-deleted one.
func (s *state) versionWith(name string, schemas []*Schema, deleted bool) (Version, bool) {
	var found Version
	for _, schema := range schemas {
		s.usages.Ascend(usage{id: schema.ID, subject: name}, func(u usage) bool {
			if u.id != schema.ID || u.subject != name {
				return false
			}
			better := found.Schema == nil || (found.Deleted && !u.deleted) ||
				(found.Deleted == u.deleted && u.version > found.Version)
			if better && (deleted || !u.deleted) {
				found = Version{Subject: name, Version: u.version, Deleted: u.deleted, Schema: schema}
			}
			return true
		})
	}
	return found, found.Schema != nil
}

// hasUsage reports whether an id has a version that matches.
func (s *state) hasUsage(id int32, match func(usage) bool) bool {
	found := false
	s.usages.Ascend(usage{id: id}, func(u usage) bool {
		if u.id != id {
			return false
		}
		found = match(u)
		return !found
	})
	return found
}

// visitReferrers calls visit with the id of every schema that refers to a version, in
// ascending order, until visit returns false.
func (s *state) visitReferrers(name string, version int32, visit func(id int32) bool) {
	s.referrers.Ascend(referrer{subject: name, version: version}, func(r referrer) bool {
		if r.subject != name || r.version != version {
			return false
		}
		return visit(r.id)
	})
}

// referenced reports whether a schema refers to this version and has itself a
// version that matches.
func (s *state) referenced(name string, version int32, match func(usage) bool) bool {
	found := false
	s.visitReferrers(name, version, func(id int32) bool {
		found = s.hasUsage(id, match)
		return !found
	})
	return found
}
