package avro_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"freshet/internal/registry/avro"
)

// The files in testdata were recorded from Apache Avro for Java: the results of its parser
// and printer (1.12.0 and 1.12.2, where they agree), of the registry's normalization, and of
// its compatibility check. They are expected results, not output of this package.

// recordedParse is a line of parse.jsonl. The resolved and the normalized text are recorded
// only if they differ from the canonical one.
type recordedParse struct {
	Schema     string
	Refs       []string
	Error      string
	Canonical  string
	Resolved   string
	Normalized string
}

// recordedCheck is a line of check.jsonl; a problem is type, message and path.
type recordedCheck struct {
	Reader   string
	Writer   string
	Problems [][3]string
}

func readLines[T any](t testing.TB, path string) []T {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var lines []T
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var line T
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	if err := scanner.Err(); err != nil || len(lines) == 0 {
		t.Fatalf("%s: %d lines, error %v", path, len(lines), err)
	}
	return lines
}

// parseWith parses a text with references, each of which may use those before
// it.
func parseWith(t testing.TB, refs []string, text string) (*avro.Schema, error) {
	t.Helper()
	var list []avro.Reference
	for i, ref := range refs {
		s, err := avro.Parse(ref, list)
		if err != nil {
			t.Fatalf("reference %d: %v", i, err)
		}
		list = append(list, avro.Reference{Name: fmt.Sprint(i), Schema: s})
	}
	return avro.Parse(text, list)
}

// problemsOf calls Check without a spend function.
func problemsOf(reader, writer *avro.Schema) []avro.Incompatibility {
	found, err := avro.Check(reader, writer, nil)
	if err != nil {
		panic(err)
	}
	return found
}

func mustParse(t testing.TB, text string) *avro.Schema {
	t.Helper()
	s, err := avro.Parse(text, nil)
	if err != nil {
		t.Fatalf("Parse(%s): %v", text, err)
	}
	return s
}

func TestParserAndPrinterAgreeWithJava(t *testing.T) {
	t.Parallel()
	for _, want := range readLines[recordedParse](t, "testdata/parse.jsonl") {
		s, err := parseWith(t, want.Refs, want.Schema)
		if (err != nil) != (want.Error != "") {
			t.Errorf("Parse(%s)\n error %v\n Java: %q", want.Schema, err, want.Error)
		}
		if err != nil {
			continue
		}
		if want.Resolved == "" {
			want.Resolved = want.Canonical
		}
		if want.Normalized == "" {
			want.Normalized = want.Canonical
		}
		got := recordedParse{
			Schema: want.Schema, Refs: want.Refs, Canonical: s.Canonical(), Resolved: s.Resolved(),
			Normalized: s.Normalized(),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("differs from Java:\n%s", diff)
		}
	}
}

func TestCheckAgreesWithJava(t *testing.T) {
	t.Parallel()
	for _, want := range readLines[recordedCheck](t, "testdata/check.jsonl") {
		got := [][3]string{}
		for _, i := range problemsOf(mustParse(t, want.Reader), mustParse(t, want.Writer)) {
			got = append(got, [3]string{i.Type, i.Message, i.Path})
		}
		if diff := cmp.Diff(want.Problems, got); diff != "" {
			t.Errorf("reader %s\nwriter %s\ndiffers from Java:\n%s", want.Reader, want.Writer, diff)
		}
	}
}
