package schemas

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func filledRegistry(t *testing.T) *Registry {
	t.Helper()
	r := openRegistry(t, openJournal(t))
	ctx := t.Context()
	mustRegister(t, r, "zz-target", avroRecord("T", "a"))
	if _, err := r.Register(ctx, "a-referrer",
		&Draft{
			Type: Avro, Text: `{"type":"record","name":"W","fields":[{"name":"t","type":"T"}]}`,
			References: []Reference{{Name: "T", Subject: "zz-target", Version: -1}},
		}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Register(ctx, "json", &Draft{Type: JSON, Text: `{"type":"object","title":"<&>"}`}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Register(ctx, "proto",
		&Draft{Type: Protobuf, Text: "syntax = \"proto3\";\nmessage M {\n  string a = 1;\n}\n"}); err != nil {
		t.Fatal(err)
	}
	mustRegister(t, r, "gone", avroRecord("G", "a"))
	mustRegister(t, r, "gone", avroRecord("G", "a", "b?"))
	if _, err := r.DeleteVersion(ctx, "gone", 1, false); err != nil {
		t.Fatal(err)
	}
	mustRegister(t, r, "never", avroRecord("Never", "a"))
	if _, err := r.DeleteSubject(ctx, "never", false); err != nil {
		t.Fatal(err)
	}
	if _, err := r.DeleteSubject(ctx, "never", true); err != nil {
		t.Fatal(err)
	}
	if err := r.SetLevel(ctx, "json", Full); err != nil {
		t.Fatal(err)
	}
	if err := r.SetLevel(ctx, "only-level", None); err != nil {
		t.Fatal(err)
	}
	return r
}

func export(t *testing.T, r *Registry) string {
	t.Helper()
	var file bytes.Buffer
	if err := r.Export(t.Context(), &file); err != nil {
		t.Fatal(err)
	}
	return file.String()
}

func TestExportRoundTrip(t *testing.T) {
	t.Parallel()
	file := export(t, filledRegistry(t))
	other := openRegistry(t, openJournal(t))
	done, err := other.Import(t.Context(), strings.NewReader(file), nil)
	if err != nil || done != (Imported{Versions: 6, Levels: 2}) {
		t.Fatalf("got %+v, %v, want 6 versions and 2 levels\n%s", done, err, file)
	}
	if again := export(t, other); again != file {
		t.Errorf("exported\n%s\nwant\n%s", again, file)
	}
	// The new registry does not assign ids of deleted schemas either.
	if got := mustRegister(t, other, "new", avroRecord("New", "a")); got.ID != 8 {
		t.Errorf("next id: got %d, want 8", got.ID)
	}
	// A second import changes nothing.
	done, err = other.Import(t.Context(), strings.NewReader(file), nil)
	if err != nil || done != (Imported{Unchanged: 8}) {
		t.Errorf("second import: got %+v, %v, want 8 known lines", done, err)
	}
}

func TestImportRejectsInvalidFiles(t *testing.T) {
	t.Parallel()
	file := export(t, filledRegistry(t))
	lines := strings.SplitAfter(strings.TrimSuffix(file, "\n"), "\n")
	head := lines[0]
	end := func(n int) string { return fmt.Sprintf(`{"kind":"end","lines":%d}`, n) }
	for name, text := range map[string]string{
		"empty":          "",
		"cut short":      strings.Join(lines[:4], ""),
		"cut in a line":  file[:len(file)/2],
		"no head":        strings.Join(lines[1:], ""),
		"two heads":      head + head + end(2),
		"other format":   strings.Replace(file, exportFormat, "x", 1),
		"other edition":  strings.Replace(file, `"edition":1`, `"edition":2`, 1),
		"no JSON":        head + "x\n" + end(2),
		"unknown kind":   head + `{"kind":"x"}` + "\n" + end(2),
		"unknown member": head + `{"kind":"level","subject":"s","x":1}` + "\n" + end(2),
		"bad subject":    head + `{"kind":"level","subject":"a b","compatibility":"NONE"}` + "\n" + end(2),
		"bad level":      head + `{"kind":"level","subject":"s","compatibility":"X"}` + "\n" + end(2),
		"bad type": head + `{"kind":"version","subject":"s","version":1,"id":1,"schemaType":"X","schema":"{}"}` +
			"\n" + end(2),
		"no id":           head + `{"kind":"version","subject":"s","version":1,"schema":"\"int\""}` + "\n" + end(2),
		"no schema":       head + `{"kind":"version","subject":"s","version":1,"id":1}` + "\n" + end(2),
		"lines are wrong": head + end(7),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := openRegistry(t, openJournal(t))
			_, err := r.Import(t.Context(), strings.NewReader(text), nil)
			if !errors.Is(err, ErrImport) || !strings.HasPrefix(err.Error(), "Line ") {
				t.Errorf("got %v, want %v with the line number", err, ErrImport)
			}
		})
	}
}

func TestImportDoesNotOverwrite(t *testing.T) {
	t.Parallel()
	file := export(t, filledRegistry(t))
	r := openRegistry(t, openJournal(t))
	mustRegister(t, r, "mine", avroRecord("Mine", "a"))
	if _, err := r.Import(t.Context(), strings.NewReader(file), nil); !errors.Is(err, ErrImport) ||
		!strings.Contains(err.Error(), "id 1") {
		t.Errorf("import of a bound id: got %v, want %v with the id", err, ErrImport)
	}
}

func FuzzImport(f *testing.F) {
	f.Add(`{"kind":"registry","format":"freshet-registry","edition":1,"lastId":3}` + "\n" +
		`{"kind":"version","subject":"s","version":1,"id":1,"schema":"\"int\"","deleted":true}` + "\n" +
		`{"kind":"end","lines":2}`)
	f.Add(`{"kind":"registry","format":"freshet-registry","edition":1}` + "\n" +
		`{"kind":"level","subject":"s","compatibility":"none"}` + "\n" + `{"kind":"end","lines":2}`)
	r := openRegistry(f, openJournal(f))
	f.Fuzz(func(t *testing.T, file string) {
		if _, err := r.Import(t.Context(), strings.NewReader(file), nil); err != nil && !errors.Is(err, ErrImport) {
			t.Error(err)
		}
	})
}
