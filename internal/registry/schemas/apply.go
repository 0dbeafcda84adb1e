package schemas

import (
	"fmt"
	"slices"
)

// Apply implements statemachine.State. It applies a record and checks the
// invariants of the state. An error means that the record was not written by
// these rules: no replica may serve such a journal.
func (s *state) Apply(_ uint64, data []byte) error {
	r, err := decodeRecord(data)
	if err != nil {
		return err
	}
	switch r.op {
	case opRegister:
		return s.applyRegister(r)
	case opSoftDelete:
		return s.applySoftDelete(r)
	case opHardDelete:
		return s.applyHardDelete(r.subject, r.versions)
	case opSetLevel:
		return s.applySetLevel(r)
	case opSetMode:
		return s.applySetMode(r)
	default: // opReserve: decodeRecord returns no other operation
		s.lastID = max(s.lastID, r.id)
		return nil
	}
}

func (s *state) applyRegister(r *record) error {
	if CheckSubject(r.subject) != nil {
		return fmt.Errorf("subject %q has an invalid name", r.subject)
	}
	if r.id < 1 || r.version < 1 {
		return fmt.Errorf("version %d of subject %q with id %d is out of range", r.version, r.subject, r.id)
	}
	schema, known := s.schemas.Get(r.id)
	if known == r.fresh {
		if known {
			return fmt.Errorf("id %d of subject %q is already bound to a content", r.id, r.subject)
		}
		return fmt.Errorf("id %d of subject %q is not bound to a content", r.id, r.subject)
	}
	if r.fresh {
		if r.typ < Avro || r.typ > Protobuf {
			return fmt.Errorf("id %d has the unknown schema type %d", r.id, r.typ)
		}
		schema = newSchema(r.id, r.typ, r.text, r.refs)
		schema.algorithm, schema.unchecked = r.algorithm, r.unchecked
	}
	if err := s.addVersion(r.subject, versionEntry{schema: schema, at: r.at, number: r.version}); err != nil {
		return err
	}
	if r.fresh {
		s.bind(schema)
	}
	return nil
}

// bind adds a schema with a new id.
func (s *state) bind(schema *Schema) {
	s.schemas.Set(schema.ID, schema)
	s.identities.Set(identityKey{sum: schema.sum, id: schema.ID})
	for _, ref := range schema.References {
		s.referrers.Set(referrer{subject: ref.Subject, version: ref.Version, id: schema.ID})
	}
	s.lastID = max(s.lastID, schema.ID)
	s.counts.Schemas[schema.Type]++
	s.bytes += int64(len(schema.body))
}

// unbind removes a schema. lastID stays, so that its id is not assigned again.
func (s *state) unbind(schema *Schema) {
	s.schemas.Delete(schema.ID)
	s.identities.Delete(identityKey{sum: schema.sum, id: schema.ID})
	for _, ref := range schema.References {
		s.referrers.Delete(referrer{subject: ref.Subject, version: ref.Version, id: schema.ID})
	}
	s.counts.Schemas[schema.Type]--
	s.bytes -= int64(len(schema.body))
}

// addVersion adds an active version to its subject: after all other versions, or, in
// an import, between them or instead of the version with the same number.
func (s *state) addVersion(name string, e versionEntry) error {
	old, _ := s.subjects.Get(name)
	sub := &subject{name: name}
	if old != nil {
		*sub = *old
	}
	switch i, taken := sub.find(e.number); {
	case taken && s.mode != Import:
		return fmt.Errorf("version %d of subject %q already exists", e.number, name)
	case taken:
		before := sub.versions[i]
		s.removeReplaced(name, before, e.schema.ID)
		if !before.deleted {
			sub.active--
		}
		sub.versions = slices.Clone(sub.versions)
		sub.versions[i] = e
	case i == len(sub.versions):
		// Older states share the array, but their slices of it are shorter.
		sub.versions = append(sub.versions, e)
	default:
		sub.versions = slices.Insert(slices.Clone(sub.versions), i, e)
	}
	sub.active++
	s.countVersion(e, 1)
	s.usages.Set(usage{id: e.schema.ID, subject: name, version: e.number})
	s.setSubject(old, sub)
	return nil
}

// removeReplaced removes a version that an import replaces with the schema of the id
// by. It removes the old schema, too, if no other version has it.
func (s *state) removeReplaced(name string, e versionEntry, by int32) {
	s.countVersion(e, -1)
	if e.schema.ID == by {
		return
	}
	s.usages.Delete(usage{id: e.schema.ID, subject: name, version: e.number})
	if !s.hasUsage(e.schema.ID, func(usage) bool { return true }) {
		s.unbind(e.schema)
	}
	s.epoch++
}

func (s *state) applySoftDelete(r *record) error {
	old, ok := s.subjects.Get(r.subject)
	if !ok {
		return fmt.Errorf("subject %q does not exist", r.subject)
	}
	sub := &subject{name: old.name, level: old.level, versions: slices.Clone(old.versions), active: old.active}
	for _, number := range r.versions {
		i, ok := sub.find(number)
		if !ok || sub.versions[i].deleted {
			return fmt.Errorf("version %d of subject %q is not active", number, r.subject)
		}
		e := &sub.versions[i]
		s.countVersion(*e, -1)
		e.deleted = true
		s.countVersion(*e, 1)
		sub.active--
		s.usages.Set(usage{id: e.schema.ID, subject: r.subject, version: number, deleted: true})
	}
	s.setSubject(old, sub)
	return nil
}

func (s *state) applyHardDelete(name string, versions []int32) error {
	old, ok := s.subjects.Get(name)
	if !ok {
		return fmt.Errorf("subject %q does not exist", name)
	}
	gone := make(map[int32]struct{}, len(versions))
	for _, number := range versions {
		i, ok := old.find(number)
		if !ok || !old.versions[i].deleted {
			return fmt.Errorf("version %d of subject %q is not soft-deleted", number, name)
		}
		if _, twice := gone[number]; twice {
			return fmt.Errorf("version %d of subject %q is deleted twice", number, name)
		}
		gone[number] = struct{}{}
		e := old.versions[i]
		s.countVersion(e, -1)
		s.usages.Delete(usage{id: e.schema.ID, subject: name, version: number})
		if !s.hasUsage(e.schema.ID, func(usage) bool { return true }) {
			s.unbind(e.schema)
		}
	}
	sub := &subject{name: old.name, level: old.level, active: old.active}
	sub.versions = slices.DeleteFunc(slices.Clone(old.versions), func(e versionEntry) bool {
		_, ok := gone[e.number]
		return ok
	})
	s.epoch++
	s.setSubject(old, sub)
	return nil
}

func (s *state) applySetLevel(r *record) error {
	if CheckSubject(r.subject) != nil || r.level < None || r.level > AlwaysIncompatible {
		return fmt.Errorf("level %d of subject %q is unknown", r.level, r.subject)
	}
	old, _ := s.subjects.Get(r.subject)
	sub := &subject{name: r.subject}
	if old != nil {
		*sub = *old
	}
	sub.level = r.level
	s.subjects.Set(r.subject, sub)
	return nil
}

func (s *state) applySetMode(r *record) error {
	if r.mode < ReadWrite || r.mode > Import {
		return fmt.Errorf("mode %d is unknown", r.mode)
	}
	if r.purge {
		for _, sub := range s.subjects.Values() {
			var deleted []int32
			for _, e := range sub.versions {
				if e.deleted {
					deleted = append(deleted, e.number)
				}
			}
			if len(deleted) == 0 {
				continue
			}
			if err := s.applyHardDelete(sub.name, deleted); err != nil {
				return err
			}
		}
	}
	s.mode = r.mode
	return nil
}

// setSubject stores a changed subject in this state. A subject without versions is
// removed, and its level with it.
func (s *state) setSubject(old, sub *subject) {
	s.countSubject(old, -1)
	if len(sub.versions) == 0 {
		s.subjects.Delete(sub.name)
		return
	}
	s.subjects.Set(sub.name, sub)
	s.countSubject(sub, 1)
}

func (s *state) countSubject(sub *subject, n int) {
	switch {
	case sub == nil || len(sub.versions) == 0:
	case sub.active > 0:
		s.counts.Subjects += n
	default:
		s.counts.DeletedSubjects += n
	}
}

func (s *state) countVersion(e versionEntry, n int) {
	if e.deleted {
		s.counts.DeletedVersions[e.schema.Type] += n
	} else {
		s.counts.ActiveVersions[e.schema.Type] += n
	}
}
