package schemaimport_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"freshet.dev/client"
	"freshet.dev/client/schemas"
	"freshet/internal/cli/schemaimport"
)

// record returns the text of an Avro record with a name.
func record(name string) string {
	return fmt.Sprintf(`{"type":"record","name":"%s","fields":[{"name":"id","type":"long"}]}`, name)
}

// outer is a schema that refers to the record Inner.
const outer = `{"type":"record","name":"Outer","fields":[{"name":"inner","type":"Inner"}]}`

// TestImport imports from a peer, changes the peer, and imports again.
func TestImport(t *testing.T) {
	t.Parallel()
	p := &peer{
		global: "FULL", user: "reader:secret", maxID: 97100,
		levels: map[string]string{"a-outer": "NONE"}, modes: map[string]string{"z-inner": "READONLY"},
		versions: []stored{
			// a-outer is read before z-inner, to which it refers.
			{
				ID: 97001, Subject: "a-outer", Version: 3, Schema: outer,
				References: []schemas.Reference{{Name: "Inner", Subject: "z-inner", Version: -1}},
			},
			{ID: 97002, Subject: "b-plain", Version: 1, Schema: record("Plain"), deleted: true},
			{
				ID: 97003, Subject: "b-plain", Version: 2, Schema: record("PlainTwo"),
				RuleSet: json.RawMessage(`{"domainRules":[]}`),
			},
			{ID: 97004, Subject: "z-inner", Version: 1, Schema: record("Inner")},
			{ID: 1, Subject: ":.other:elsewhere", Version: 1, Schema: record("Elsewhere")},
			{ID: 97005, Subject: "not valid", Version: 1, Schema: record("Invalid")},
		},
	}
	c, r := target(t), schemas.New(target(t))
	options := schemaimport.Options{Target: c, Source: source(t, schemaimport.SourceConfig{
		URL: p.start(t), Credentials: schemaimport.Credentials{User: "reader", Password: "secret"},
	})}

	var names *schemaimport.NamesError
	if _, err := schemaimport.Import(t.Context(), options); !errors.As(err, &names) {
		t.Fatalf("a name that is not valid: got %v, want a NamesError", err)
	}
	options.SkipInvalid, options.DryRun = true, true
	want := schemaimport.Summary{Subjects: 3, Begun: 3, Read: 4, Deleted: 1, Versions: 4, Levels: 3, HighestID: 97100}
	compare(t, options, want, 4)
	if _, err := r.Version(t.Context(), "b-plain", 2); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("after a dry run: got %v, want no version", err)
	}
	options.DryRun = false
	compare(t, options, want, 4)

	got := must[*schemas.Version](t)(r.Version(t.Context(), "a-outer", 3))
	if got.ID != 97001 || len(got.References) != 1 || got.References[0].Version != 1 {
		t.Errorf("a-outer: got %+v, want id 97001 and a reference to version 1", got)
	}
	if _, err := r.Version(t.Context(), "b-plain", 1); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("soft-deleted version: got %v, want ErrNotFound", err)
	}
	must[*schemas.Version](t)(r.DeletedVersion(t.Context(), "b-plain", 1))
	for subject, level := range map[string]string{"a-outer": "NONE", "b-plain": "FULL", "z-inner": "FULL"} {
		if got := must[string](t)(r.Level(t.Context(), subject)); got != level {
			t.Errorf("level of %s: got %s, want %s", subject, got, level)
		}
	}
	if id := must[int](t)(r.Register(t.Context(), "new-subject", schemas.Schema{Text: record("New")})); id != 97101 {
		t.Errorf("first id after the import: got %d, want 97101", id)
	}

	// The source deletes a version and gets a new one.
	p.change(func(list []stored) []stored {
		list[2].deleted = true
		return append(list, stored{ID: 97090, Subject: "b-plain", Version: 3, Schema: record("PlainThree")})
	})
	compare(t, options, schemaimport.Summary{
		Subjects: 3, Begun: 3, Read: 5, Deleted: 2, Versions: 1, Existing: 7, Removed: 1, HighestID: 97100,
	}, 4)
	if _, err := r.Version(t.Context(), "b-plain", 2); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("version that the source has deleted since: got %v, want ErrNotFound", err)
	}

	// A dry run reports what contradicts the cluster.
	p.change(func(list []stored) []stored {
		list[3].ID = 97777
		return append(list, stored{ID: 97101, Subject: "c-taken", Version: 1, Schema: record("Taken")})
	})
	options.DryRun = true
	sum, err := schemaimport.Import(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"z-inner version 1 has the id 97777", "c-taken version 1 has the id 97101"} {
		if !strings.Contains(strings.Join(sum.Problems, "\n"), want) {
			t.Errorf("problems %q do not contain %q", sum.Problems, want)
		}
	}
	options.DryRun = false
	if _, err := schemaimport.Import(t.Context(), options); err == nil ||
		!strings.Contains(err.Error(), "subject z-inner version 1: ") || strings.Contains(err.Error(), "Line") {
		t.Errorf("import of a contradiction: got %v, want an error with the subject and the version", err)
	}
}

// compare imports, or compares in a dry run, and checks the counts and the number of warnings.
func compare(t *testing.T, options schemaimport.Options, want schemaimport.Summary, warnings int) {
	t.Helper()
	got, err := schemaimport.Import(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	want.DryRun = options.DryRun
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(schemaimport.Summary{}, "Warnings")); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	if len(got.Warnings) != warnings {
		t.Errorf("got %d warnings, want %d: %q", len(got.Warnings), warnings, got.Warnings)
	}
}

// TestImportMany imports more versions than a batch has, and only those of a prefix.
func TestImportMany(t *testing.T) {
	t.Parallel()
	p := &peer{global: "BACKWARD"}
	for i := range 500 {
		p.versions = append(p.versions, stored{
			ID: 20000 + i, Subject: fmt.Sprintf("many-%03d", i/5), Version: i%5 + 1,
			Schema: record(fmt.Sprintf("Many%d", i)),
		})
	}
	p.versions = append(p.versions, stored{ID: 30000, Subject: "few", Version: 1, Schema: record("Few")})
	var last schemaimport.Summary
	options := schemaimport.Options{
		Target: target(t), Source: source(t, schemaimport.SourceConfig{URL: p.start(t)}), SubjectPrefix: "many-",
		Progress: func(s schemaimport.Summary) { last = s },
	}
	compare(t, options, schemaimport.Summary{Subjects: 100, Begun: 100, Read: 500, Versions: 500, HighestID: 20499}, 0)
	if last.Read != 500 || last.Begun != 100 {
		t.Errorf("last progress: got %+v, want 100 subjects and 500 versions", last)
	}
	compare(t, options, schemaimport.Summary{Subjects: 100, Begun: 100, Read: 500, Existing: 500, HighestID: 20499}, 0)
}

// TestImportContext imports one context of the source.
func TestImportContext(t *testing.T) {
	t.Parallel()
	p := &peer{global: "BACKWARD", versions: []stored{
		{ID: 1, Subject: "ctx-a", Version: 1, Schema: record("Default")},
		{ID: 40001, Subject: ":.east:ctx-a", Version: 1, Schema: record("Inner")},
		{
			ID: 40002, Subject: ":.east:ctx-b", Version: 1, Schema: outer,
			References: []schemas.Reference{{Name: "Inner", Subject: ":.east:ctx-a", Version: 1}},
		},
	}}
	options := schemaimport.Options{
		Target: target(t), Source: source(t, schemaimport.SourceConfig{URL: p.start(t), Context: ".east"}),
	}
	compare(t, options, schemaimport.Summary{Subjects: 2, Begun: 2, Read: 2, Versions: 2, HighestID: 40002}, 0)
	if got := must[*schemas.Version](t)(schemas.New(target(t)).Version(t.Context(), "ctx-a", 1)); got.ID != 40001 {
		t.Errorf("ctx-a: got id %d, want 40001", got.ID)
	}
}

// TestErrors has sources from which nothing is imported.
func TestErrors(t *testing.T) {
	t.Parallel()
	closed := (&peer{user: "reader:secret"}).start(t)
	missing := (&peer{global: "BACKWARD", versions: []stored{
		{ID: 50001, Subject: "com.shop.Order", Version: 1, Schema: record("Order")},
	}}).start(t)
	dangling := (&peer{global: "BACKWARD", versions: []stored{
		{
			ID: 50002, Subject: "dangling", Version: 1, Schema: outer,
			References: []schemas.Reference{{Name: "Inner", Subject: "nowhere", Version: 4}},
		},
	}}).start(t)
	var leaked atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { leaked.Store(true) }))
	t.Cleanup(elsewhere.Close)
	redirecting := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	t.Cleanup(redirecting.Close)
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("<html>"))
	}))
	t.Cleanup(pages.Close)
	for name, c := range map[string]struct{ url, want string }{
		"wrong password":       {closed, "Unauthorized (status 401)"},
		"missing namespace":    {missing, "com.shop.Order belongs to com/shop"},
		"missing reference":    {dangling, "version 1 refers to another schema: reading subject nowhere version 4"},
		"another address":      {redirecting.URL, "redirects to another address"},
		"no registry":          {pages.URL, "not that of a schema registry"},
		"no registry, no JSON": {pages.URL + "/x", "not that of a schema registry"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			credentials := schemaimport.Credentials{User: "reader", Password: "wrong"}
			_, err := schemaimport.Import(t.Context(), schemaimport.Options{
				Target: target(t),
				Source: source(t, schemaimport.SourceConfig{URL: c.url, Credentials: credentials}),
			})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
	t.Cleanup(func() {
		if leaked.Load() {
			t.Error("the source's redirect was followed")
		}
	})
}

func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
