package schemas

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"freshet/internal/base/errs"
)

// model is a simple implementation of the registry, without copy-on-write, indexes
// and caches.
type model struct {
	subjects map[string]*modelSubject
	ids      map[string]int32 // of contents that a version has
	lastID   int32
}

type modelSubject struct {
	level    Level
	versions []modelVersion
}

type modelVersion struct {
	number  int32
	content modelContent
	deleted bool
}

// modelContent is a record with fields, some of which have a default, and optionally
// a reference.
type modelContent struct {
	fields     string // one letter per field; upper case means that it has a default
	refSubject string
	refVersion int32
}

func (c modelContent) key() string {
	return fmt.Sprintf("%s|%s|%d", c.fields, c.refSubject, c.refVersion)
}

func (c modelContent) draft() *Draft {
	var fields []string
	for _, f := range c.fields {
		name := strings.ToLower(string(f))
		if name != string(f) {
			name += "?"
		}
		fields = append(fields, name)
	}
	if c.refSubject == "" {
		return &Draft{Type: Avro, Text: avroRecord("R", fields...)}
	}
	text := avroRecord("W", fields...)
	text = strings.Replace(text, `"fields":[`, `"fields":[{"name":"ref","type":"R"},`, 1)
	text = strings.Replace(text, "},]", "}]", 1)
	return &Draft{
		Type: Avro, Text: text,
		References: []Reference{{Name: "R", Subject: c.refSubject, Version: c.refVersion}},
	}
}

// reads reports whether a record with the fields of c can read data of one with the
// fields of w.
func (c modelContent) reads(w modelContent) bool {
	if (c.refSubject == "") != (w.refSubject == "") {
		return false // the records have different names
	}
	for _, f := range c.fields {
		if f >= 'a' && !strings.ContainsAny(w.fields, string(f)+strings.ToUpper(string(f))) {
			return false
		}
	}
	return true
}

func (m *model) subject(name string) *modelSubject {
	if m.subjects[name] == nil {
		m.subjects[name] = &modelSubject{}
	}
	return m.subjects[name]
}

func (m *model) active(name string) (vs []modelVersion) {
	if s := m.subjects[name]; s != nil {
		for _, v := range s.versions {
			if !v.deleted {
				vs = append(vs, v)
			}
		}
	}
	return vs
}

func (m *model) find(name string, number int32) *modelVersion {
	if s := m.subjects[name]; s != nil {
		for i := range s.versions {
			if s.versions[i].number == number {
				return &s.versions[i]
			}
		}
	}
	return nil
}

func (m *model) register(name string, c modelContent) (Registered, error) {
	if c.refSubject != "" {
		if v := m.find(c.refSubject, c.refVersion); v == nil || v.deleted {
			return Registered{}, ErrInvalidSchema
		}
	}
	active := m.active(name)
	for _, v := range slices.Backward(active) {
		if v.content == c {
			return Registered{ID: m.ids[c.key()], Version: v.number}, nil
		}
	}
	level := Backward
	if s := m.subjects[name]; s != nil && s.level != 0 {
		level = s.level
	}
	for i, v := range slices.Backward(active) {
		if !level.Transitive() && i != len(active)-1 {
			break
		}
		if level == AlwaysIncompatible || level.backward() && !m.readable(c, v.content) || level.forward() &&
			!m.readable(v.content, c) {
			return Registered{}, ErrIncompatible
		}
	}
	id, known := m.ids[c.key()]
	if !known {
		m.lastID++
		id = m.lastID
		m.ids[c.key()] = id
	}
	s := m.subject(name)
	number := int32(1)
	if n := len(s.versions); n > 0 {
		number = s.versions[n-1].number + 1
	}
	s.versions = append(s.versions, modelVersion{number: number, content: c})
	return Registered{ID: id, Version: number}, nil
}

// readable reports whether r and its reference can read data of w.
func (m *model) readable(r, w modelContent) bool {
	if !r.reads(w) {
		return false
	}
	if r.refSubject == "" {
		return true
	}
	return m.find(r.refSubject, r.refVersion).content.reads(m.find(w.refSubject, w.refVersion).content)
}

// referenced reports whether a subject other than except refers to a version.
func (m *model) referenced(name string, number int32, deleted bool, except string) bool {
	for other, s := range m.subjects {
		for _, v := range s.versions {
			if other != except && v.content.refSubject == name && v.content.refVersion == number &&
				(deleted || !v.deleted) {
				return true
			}
		}
	}
	return false
}

func (m *model) deleteVersion(name string, number int32, permanent bool) error {
	if s := m.subjects[name]; s == nil || len(s.versions) == 0 {
		return ErrSubjectNotFound
	}
	v := m.find(name, number)
	switch {
	case v == nil:
		return ErrVersionNotFound
	case v.deleted && !permanent:
		return ErrVersionSoftDeleted
	case m.referenced(name, number, permanent, ""):
		return ErrReferenceExists
	case permanent && !v.deleted:
		return ErrVersionNotSoftDeleted
	case permanent:
		m.remove(name, number)
	default:
		v.deleted = true
	}
	return nil
}

func (m *model) deleteSubject(name string, permanent bool) ([]int32, error) {
	s := m.subjects[name]
	if s == nil || len(s.versions) == 0 {
		return nil, ErrSubjectNotFound
	}
	active := len(m.active(name))
	if active == 0 && !permanent {
		return nil, ErrSubjectSoftDeleted
	}
	var numbers []int32
	for _, v := range s.versions {
		if v.deleted && !permanent {
			continue
		}
		if m.referenced(name, v.number, permanent, name) {
			return nil, ErrReferenceExists
		}
		numbers = append(numbers, v.number)
	}
	if permanent && active > 0 {
		return nil, ErrSubjectNotSoftDeleted
	}
	for _, n := range numbers {
		if permanent {
			m.remove(name, n)
		} else {
			m.find(name, n).deleted = true
		}
	}
	return numbers, nil
}

func (m *model) remove(name string, number int32) {
	s := m.subjects[name]
	content := m.find(name, number).content
	s.versions = slices.DeleteFunc(s.versions, func(v modelVersion) bool { return v.number == number })
	if len(s.versions) == 0 {
		delete(m.subjects, name)
	}
	for _, s := range m.subjects {
		for _, v := range s.versions {
			if v.content == content {
				return
			}
		}
	}
	delete(m.ids, content.key())
}

// steps returns the number of steps of a random test: n, or the value of the
// environment variable FRESHET_TEST_STEPS.
func steps(t *testing.T, n int) int {
	t.Helper()
	if text := os.Getenv("FRESHET_TEST_STEPS"); text != "" {
		scaled, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return scaled
	}
	return n
}

func TestRegistryAgreesWithModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			w := &walk{
				t: t, rng: rand.New(rand.NewPCG(seed, 99)),
				m: &model{subjects: map[string]*modelSubject{}, ids: map[string]int32{}},
			}
			j := openJournal(t)
			w.r = openRegistry(t, j)
			for i := range steps(t, 600) {
				w.step()
				if i%150 == 149 { // restoring the journal or a snapshot yields the same state
					sameAfterSnapshot(t, w.r.machine.View())
					w.r = openRegistry(t, j)
				}
				if i%25 == 0 {
					w.compare()
				}
				if t.Failed() {
					t.Fatalf("after %d steps: %s", i+1, w.operation)
				}
			}
			w.compare()
		})
	}
}

// walk performs random operations on a registry and on the model.
type walk struct {
	t         *testing.T
	rng       *rand.Rand
	r         *Registry
	m         *model
	operation string
}

func (w *walk) pick(from ...string) string { return from[w.rng.IntN(len(from))] }

func (w *walk) step() {
	ctx := w.t.Context()
	name := w.pick("a", "b", "c", "x.y.z")
	number := int32(1 + w.rng.IntN(6))
	switch n := w.rng.IntN(100); {
	case n < 55:
		c := modelContent{fields: w.pick("a", "ab", "aB", "abC", "AB", "b", "aBC", "ABC")}
		if target := w.pick("a", "b", "c"); w.rng.IntN(3) == 0 {
			// A target that has itself a reference defines W, too.
			if v := w.m.find(target, number); v == nil || v.content.refSubject == "" {
				c.refSubject, c.refVersion = target, number
			}
		}
		w.operation = fmt.Sprintf("register %s in %s", c.key(), name)
		got, err := w.r.Register(ctx, name, c.draft())
		got.New = false
		want, wantErr := w.m.register(name, c)
		w.same(got, want, err, wantErr)
	case n < 70:
		permanent := w.rng.IntN(2) == 0
		w.operation = fmt.Sprintf("delete version %d of %s, permanent %t", number, name, permanent)
		_, err := w.r.DeleteVersion(ctx, name, VersionID(number), permanent)
		w.same(nil, nil, err, w.m.deleteVersion(name, number, permanent))
	case n < 82:
		permanent := w.rng.IntN(2) == 0
		w.operation = fmt.Sprintf("delete subject %s, permanent %t", name, permanent)
		got, err := w.r.DeleteSubject(ctx, name, permanent)
		want, wantErr := w.m.deleteSubject(name, permanent)
		w.same(got, want, err, wantErr)
	default:
		level := Levels()[w.rng.IntN(len(Levels()))]
		if w.rng.IntN(2) == 0 {
			level = None
		}
		w.operation = fmt.Sprintf("set level of %s to %s", name, level)
		w.same(nil, nil, w.r.SetLevel(ctx, name, level), nil)
		w.m.subject(name).level = level
	}
}

func (w *walk) same(got, want any, err, wantErr error) {
	w.t.Helper()
	if !errors.Is(err, wantErr) || (wantErr == nil && fmt.Sprint(got) != fmt.Sprint(want)) {
		w.t.Errorf("%s: got %v, %v, want %v, %v", w.operation, got, err, want, wantErr)
	}
}

// compare compares all results of reads.
func (w *walk) compare() {
	t, ctx := w.t, w.t.Context()
	t.Helper()
	for _, which := range []Visibility{Active, WithDeleted, OnlyDeleted} {
		var got, want []string
		if err := w.r.Subjects(ctx, which, func(s string) bool { got = append(got, s); return true }); err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(w.m.subjects)) {
			if len(w.m.subjects[name].versions) > 0 && which.shows(len(w.m.active(name)) == 0) {
				want = append(want, name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("subjects with visibility %d: got %v, want %v", which, got, want)
		}
	}
	counts := Counts{}
	for _, name := range []string{"a", "b", "c", "x.y.z"} {
		w.compareSubject(name, &counts)
	}
	counts.Schemas[Avro] = len(w.m.ids)
	if got := w.r.Counts(); got != counts {
		t.Errorf("counts: got %+v, want %+v", got, counts)
	}
	for id := int32(1); id <= w.m.lastID+1; id++ {
		_, err := w.r.SchemaByID(ctx, id)
		if bound := slices.Contains(slices.Collect(maps.Values(w.m.ids)), id); bound != (err == nil) {
			t.Errorf("id %d: got error %v, want that it exists: %t", id, err, bound)
		}
	}
}

func (w *walk) compareSubject(name string, counts *Counts) {
	t, ctx := w.t, w.t.Context()
	t.Helper()
	s := w.m.subjects[name]
	level, err := w.r.Level(ctx, name)
	want := Backward
	if s != nil && s.level != 0 {
		want = s.level
	}
	if err != nil || level != want {
		t.Errorf("level of %s: got %s, %v, want %s", name, level, err, want)
	}
	if s == nil {
		s = &modelSubject{}
	}
	for _, v := range s.versions {
		got, err := w.r.Version(ctx, name, VersionID(v.number), true)
		if err != nil || got.Deleted != v.deleted || got.Schema.ID != w.m.ids[v.content.key()] ||
			got.Schema.Text() != canonicalOf(t, v.content) {
			t.Errorf("version %d of %s: got %+v, %v, want %+v", v.number, name, got, err, v)
		}
		if v.deleted {
			counts.DeletedVersions[Avro]++
			continue
		}
		counts.ActiveVersions[Avro]++
		found, err := w.r.Lookup(ctx, name, v.content.draft(), false)
		if err != nil || found.Schema.ID != got.Schema.ID {
			t.Errorf("lookup of %s in %s: got %+v, %v, want id %d", v.content.key(), name, found, err, got.Schema.ID)
		}
	}
	switch active := len(w.m.active(name)); {
	case active > 0:
		counts.Subjects++
	case len(s.versions) > 0:
		counts.DeletedSubjects++
	}
	if _, err := w.r.Version(ctx, name, Latest,
		false); (len(w.m.active(name)) == 0) != (errs.KindOf(err) == errs.NotFound && err != nil) {
		t.Errorf("latest version of %s: got error %v with %d active versions", name, err, len(w.m.active(name)))
	}
}

func canonicalOf(t *testing.T, c modelContent) string {
	t.Helper()
	d := c.draft()
	return strings.ReplaceAll(d.Text, " ", "")
}

func sameAfterSnapshot(t *testing.T, s *state) {
	t.Helper()
	var first, second bytes.Buffer
	if err := s.Snapshot(&first); err != nil {
		t.Fatal(err)
	}
	data := bytes.Clone(first.Bytes())
	again := newState()
	if err := again.Restore(&first); err != nil {
		t.Fatal(err)
	}
	if err := again.Snapshot(&second); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, second.Bytes()) || again.counts != s.counts || again.lastID != s.lastID ||
		again.epoch != s.epoch ||
		again.usages.Len() != s.usages.Len() || again.referrers.Len() != s.referrers.Len() ||
		again.identities.Len() != s.identities.Len() {
		t.Errorf("restored state differs: got counts %+v, want %+v", again.counts, s.counts)
	}
}
