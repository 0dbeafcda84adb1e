package schemas

import (
	"errors"
	"testing"
)

// An import that replaces the content of a version removes the old content
// completely: in memory, in a snapshot and after a restart. A version that a schema
// refers to is not replaced.
func TestImportOverAVersion(t *testing.T) {
	t.Parallel()
	j := openJournal(t)
	r := openRegistry(t, j)
	ctx := t.Context()
	if err := r.SetLevel(ctx, "s", Full); err != nil {
		t.Fatal(err)
	}
	if err := r.SetMode(ctx, Import, false); err != nil {
		t.Fatal(err)
	}
	put := func(subject, text string, id, version int32, refs ...Reference) error {
		_, err := r.Register(ctx, subject, &Draft{Type: Avro, Text: text, ID: id, Version: version, References: refs})
		return err
	}
	refer := func(subject string, version int32) Reference {
		return Reference{Name: "R", Subject: subject, Version: version}
	}
	holder := `{"type":"record","name":"H","fields":[{"name":"r","type":"R"}]}`
	for _, step := range []struct {
		name string
		err  error
		want error
	}{
		{"new version", put("s", avroRecord("R", "a"), 10, 1), nil},
		{"same version again", put("s", avroRecord("R", "a"), 10, 1), nil},
		{"other content", put("s", avroRecord("R", "b"), 11, 1), nil},
		{"bound id", put("s", avroRecord("R", "c"), 11, 2), ErrNotPermitted},
		{"id of replaced content", put("s", avroRecord("R", "d"), 10, 2), nil},
		{"version with a reference", put("h", holder, 20, 1, refer("s", 2)), nil},
		{"referenced version", put("s", avroRecord("R", "e"), 12, 2), ErrReferenceExists},
		{"referring version", put("h", `"string"`, 21, 1), nil},
		{"version that is no longer referenced", put("s", avroRecord("R", "e"), 12, 2), nil},
	} {
		if !errors.Is(step.err, step.want) {
			t.Errorf("%s: got %v, want %v", step.name, step.err, step.want)
		}
	}
	if _, err := r.DeleteVersion(ctx, "s", 2, false); err != nil {
		t.Fatal(err)
	}
	if err := put("s", avroRecord("R", "f"), 13, 2); err != nil {
		t.Errorf("replacing a soft-deleted version: got %v, want no error", err)
	}

	sameAfterSnapshot(t, r.machine.View())
	for name, r := range map[string]*Registry{"now": r, "replayed": openRegistry(t, j)} {
		st, err := r.machine.Fresh(ctx)
		if err != nil {
			t.Fatal(err)
		}
		want := Counts{Subjects: 2}
		want.Schemas[Avro], want.ActiveVersions[Avro] = 3, 3
		if st.counts != want || st.lastID != 21 {
			t.Errorf("%s: got counts %+v and last id %d, want %+v and 21", name, st.counts, st.lastID, want)
		}
		for id, there := range map[int32]bool{10: false, 11: true, 12: false, 13: true, 20: false, 21: true} {
			if _, ok := st.schemas.Get(id); ok != there {
				t.Errorf("%s: id %d exists: got %t, want %t", name, id, ok, there)
			}
		}
		if level := st.level("s"); level != Full {
			t.Errorf("%s: got level %s, want %s", name, level, Full)
		}
	}
}
