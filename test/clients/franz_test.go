package clients_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"
)

func newFranz(t *testing.T) *sr.Client {
	t.Helper()
	url, token := target(t)
	c, err := sr.NewClient(sr.URLs(url), sr.BasicAuth("placeholder", token))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func franzCode(err error) int {
	var e *sr.ResponseError
	if errors.As(err, &e) {
		return e.ErrorCode
	}
	return 0
}

func TestFranzSchemas(t *testing.T) {
	t.Parallel()
	c, ctx := newFranz(t), t.Context()
	const subject = "franz-client-value"
	types, err := c.SupportedTypes(ctx)
	if err != nil || len(types) != 3 {
		t.Errorf("types: %v %v", types, err)
	}
	one := sr.Schema{Schema: `{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}`}
	two := sr.Schema{Schema: `{"type":"record","name":"R","fields":[{"name":"a","type":"string"},` +
		`{"name":"b","type":"int","default":0}]}`}
	bad := sr.Schema{Schema: `{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}`}
	// CreateSchema registers the schema, queries its subjects and versions, and reads each of them.
	first, err := c.CreateSchema(ctx, subject, one)
	if err != nil || first.Version != 1 || first.Schema.Schema != one.Schema {
		t.Fatalf("create: %+v %v", first, err)
	}
	second, err := c.CreateSchema(ctx, subject, two)
	if err != nil || second.Version != 2 || second.ID == first.ID {
		t.Fatalf("create: %+v %v", second, err)
	}
	if _, err := c.CreateSchema(ctx, subject, bad); franzCode(err) != 409 {
		t.Errorf("incompatible: %v", err)
	}
	if text, err := c.SchemaTextByID(ctx, first.ID); err != nil || text != one.Schema {
		t.Errorf("text by id: %q %v", text, err)
	}
	if text, err := c.SchemaTextByVersion(ctx, subject, -1); err != nil || text != two.Schema {
		t.Errorf("text of the latest: %q %v", text, err)
	}
	if s, err := c.SchemaByID(ctx, second.ID); err != nil || s.Schema != two.Schema {
		t.Errorf("by id: %+v %v", s, err)
	}
	if s, err := c.SchemaByVersion(ctx, subject, 1); err != nil || s.ID != first.ID {
		t.Errorf("by version: %+v %v", s, err)
	}
	if all, err := c.Schemas(ctx, subject); err != nil || len(all) != 2 {
		t.Errorf("all: %v %v", all, err)
	}
	if s, err := c.LookupSchema(ctx, subject, one); err != nil || s.Version != 1 {
		t.Errorf("lookup: %+v %v", s, err)
	}
	if subjects, err := c.SubjectsByID(ctx, first.ID); err != nil || !slices.Contains(subjects, subject) {
		t.Errorf("subjects by id: %v %v", subjects, err)
	}
	if at, err := c.SchemaVersionsByID(ctx, first.ID); err != nil || len(at) == 0 {
		t.Errorf("versions by id: %v %v", at, err)
	}
	if r, err := c.CheckCompatibility(sr.WithParams(ctx, sr.Verbose), subject, -1, bad); err != nil || r.Is ||
		len(r.Messages) == 0 {
		t.Errorf("check: %+v %v", r, err)
	}
}

func TestFranzLevelsModesAndDeletes(t *testing.T) {
	t.Parallel()
	c, ctx := newFranz(t), t.Context()
	const subject, referrer = "franz-delete-value", "franz-referrer-value"
	if _, err := c.CreateSchema(ctx, subject,
		sr.Schema{Schema: `{"type":"record","name":"T","fields":[]}`}); err != nil {
		t.Fatal(err)
	}
	ref := sr.Schema{
		Schema:     `{"type":"record","name":"W","fields":[{"name":"t","type":"T"}]}`,
		References: []sr.SchemaReference{{Name: "T", Subject: subject, Version: 1}},
	}
	with, err := c.CreateSchema(ctx, referrer, ref)
	if err != nil || len(with.References) != 1 {
		t.Fatalf("with a reference: %+v %v", with, err)
	}
	if by, err := c.SchemaReferences(ctx, subject, 1); err != nil || len(by) != 1 || by[0].Subject != referrer {
		t.Errorf("referenced by: %v %v", by, err)
	}
	if err := c.DeleteSchema(ctx, subject, 1, sr.SoftDelete); franzCode(err) != 42206 {
		t.Errorf("deleting a referenced schema: %v", err)
	}
	for _, r := range c.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatFullTransitive}, subject) {
		if r.Err != nil || r.Level != sr.CompatFullTransitive {
			t.Errorf("set the level: %+v", r)
		}
	}
	for _, r := range c.Compatibility(ctx, subject) {
		if r.Err != nil || r.Level != sr.CompatFullTransitive {
			t.Errorf("level: %+v", r)
		}
	}
	for _, r := range c.Mode(ctx) {
		if r.Err != nil || r.Mode != sr.ModeReadWrite {
			t.Errorf("mode: %+v", r)
		}
	}
	for _, s := range []string{referrer, subject} {
		if gone, err := c.DeleteSubject(ctx, s, sr.SoftDelete); err != nil || !slices.Equal(gone, []int{1}) {
			t.Errorf("delete %s: %v %v", s, gone, err)
		}
	}
	if all, err := c.Subjects(sr.WithParams(ctx, sr.ShowDeleted)); err != nil || !slices.Contains(all, subject) {
		t.Errorf("deleted subjects: %v %v", all, err)
	}
	for _, s := range []string{referrer, subject} {
		if gone, err := c.DeleteSubject(ctx, s, sr.HardDelete); err != nil || !slices.Equal(gone, []int{1}) {
			t.Errorf("deleting %s permanently: %v %v", s, gone, err)
		}
	}
	if all, err := c.Subjects(sr.WithParams(ctx, sr.ShowDeleted)); err != nil || slices.Contains(all, subject) {
		t.Errorf("subjects: %v %v", all, err)
	}
}

func TestFranzWithoutKey(t *testing.T) {
	t.Parallel()
	url, _ := target(t)
	c, err := sr.NewClient(sr.URLs(url))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Subjects(t.Context()); franzCode(err) != 401 {
		t.Errorf("%v", err)
	}
}
