package avro_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"freshet/internal/registry/avro"
)

// repeat joins n texts with commas.
func repeat(n int, text func(i int) string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = text(i)
	}
	return strings.Join(list, ",")
}

// checkCost fails the test if work takes too long, even for a busy machine, or allocates too
// much memory.
func checkCost(t *testing.T, what string, work func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	work()
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	allocated := (after.TotalAlloc - before.TotalAlloc) >> 20
	t.Logf("%s: %v, %d MB", what, took.Round(time.Millisecond), allocated)
	if took > 30*time.Second || allocated > 1500 {
		t.Errorf("%s: got %v and %d MB, want at most 30 s and 1500 MB", what, took, allocated)
	}
}

// TestLargeSchemas is not parallel, because it measures time and memory.
func TestLargeSchemas(t *testing.T) {
	if testing.Short() {
		t.Skip("reads schemas of several megabytes")
	}
	size := 10_000 // a tenth of the number that fits into 5 MB
	fields := func(of string) string {
		return record("R", repeat(2*size,
			func(i int) string { return fmt.Sprintf(`{"name":"f%d","type":"%s"}`, i, of) }))
	}
	union := func(name string) string {
		return `[` + repeat(size,
			func(i int) string { return fmt.Sprintf(`{"type":"record","name":"%s%d","fields":[]}`, name, i) }) + `]`
	}
	pairs := map[string][2]string{
		"many fields":              {fields("int"), fields("int")},
		"many fields of two types": {fields("int"), fields("string")},
		"many branches":            {union("R"), union("R")},
		"many other branches":      {union("R"), union("S")},
	}
	for name, pair := range pairs {
		var schemas [2]*avro.Schema
		for i, text := range pair {
			checkCost(t, name, func() {
				schemas[i] = mustParse(t, text)
				_, _ = schemas[i].Normalized(), schemas[i].Resolved()
			})
		}
		checkCost(t, "check of "+name, func() { problemsOf(schemas[0], schemas[1]) })
	}
}

func TestParseRejectsMaliciousSchemas(t *testing.T) {
	if testing.Short() {
		t.Skip("reads schemas of several megabytes")
	}
	tests := map[string]struct{ text, want string }{
		"too long":        {strings.Repeat(" ", 9<<20), "longer than 8388608 bytes"},
		"brackets":        {strings.Repeat("[", 5<<20), "nesting depth"},
		"nested arrays":   {strings.Repeat(`{"type":"array","items":`, 100_000), "nesting depth"},
		"too many values": {`[` + strings.Repeat("1,", 2<<20) + `1]`, "more than 2097152 JSON values"},
		"names that chain": {`[` + repeat(20_000, func(i int) string {
			return fmt.Sprintf(`{"type":"record","name":"R%d","fields":[{"name":"a","type":"R%d"}]}`, i, i+1)
		}) + `,{"type":"fixed","name":"R20000","size":1}]`, "nesting depth"},
		"names that inherit much": {`{"type":"record","name":"R","namespace":"` + strings.Repeat("a", 100_000) +
			`","fields":[` + repeat(2000, func(i int) string {
			return fmt.Sprintf(`{"name":"f%d","type":{"type":"fixed","name":"F%d","size":1}}`, i, i)
		}) + `]}`, "full names of the schema are longer"},
		"names printed in full": {`{"type":"record","name":"map","namespace":"` + strings.Repeat("a", 20_000) +
			`","fields":[` + repeat(2000, func(i int) string { return fmt.Sprintf(`{"name":"f%d","type":"map"}`, i) }) +
			`]}`, "printed schema is longer"},
		"defaults times branches": {
			`{"type":"record","name":"T","fields":[{"name":"u","type":{"type":"array","items":[` +
				repeat(10_000, func(i int) string {
					return fmt.Sprintf(`{"type":"record","name":"F%d","fields":[]}`, i)
				}) + `]},"default":[` + strings.Repeat("1,", 10_000) + `1]}]}`,
			"Invalid default",
		},
		"defaults that chain": {`[` + repeat(20_000, func(i int) string {
			return fmt.Sprintf(`{"type":"record","name":"R%d","fields":[{"name":"a","type":%s,"default":{}}]}`, i,
				map[bool]string{true: `{"type":"map","values":"int"}`, false: fmt.Sprintf(`"R%d"`, i-1)}[i == 0])
		}) + `]`, ""},
	}
	for name, tc := range tests {
		checkCost(t, name, func() {
			_, err := avro.Parse(tc.text, nil)
			if tc.want == "" {
				if err != nil {
					t.Errorf("%s: got error %v, want none", name, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: error %.200v, want %q", name, err, tc.want)
			} else if len(err.Error()) > 4000 {
				t.Errorf("%s: got an error of %d bytes, want at most 4000", name, len(err.Error()))
			}
		})
	}
}

// doubling returns a record with types that use each other: R1 uses R0 twice, R2 uses R1
// twice, and so on.
func doubling(levels int, leaf, rest string) string {
	return record("T", `{"name":"z","type":`+record("R0", leaf)+`}`, repeat(levels, func(i int) string {
		of := fmt.Sprintf(`"R%d"`, i)
		return fmt.Sprintf(`{"name":"x%d","type":`, i) + record(fmt.Sprintf("R%d", i+1),
			`{"name":"a","type":`+of+rest+`}`, `{"name":"b","type":`+of+rest+`}`) + `}`
	}))
}

func TestNothingIsExponential(t *testing.T) {
	t.Parallel()
	mustParse(t, doubling(60, `{"name":"f","type":"int","default":1}`, `,"default":{}`))

	reader := mustParse(t, doubling(60, `{"name":"f","type":"int"}`, ""))
	writer := mustParse(t, doubling(60, `{"name":"f","type":"string"}`, ""))
	problems := problemsOf(reader, writer)
	if len(problems) != 10_000 || problems[0].Path != "/fields/0/type/fields/0/type" {
		t.Errorf("got %d problems, the first %v, want 10,000 from /fields/0/type/fields/0/type on",
			len(problems), problems[0])
	}
}

// TestCheckBoundsItsDepth compares two cycles of types. The number of nested pairs is the
// product of their lengths.
func TestCheckBoundsItsDepth(t *testing.T) {
	t.Parallel()
	circle := func(n int) *avro.Schema {
		text := `["null","n0.C"]`
		for i := n - 1; i >= 0; i-- {
			text = fmt.Sprintf(`["null",{"type":"record","name":"n%d.C","fields":[{"name":"next","type":%s}]}]`, i,
				text)
		}
		return mustParse(t, text)
	}
	if problems := problemsOf(circle(40), circle(41)); len(problems) != 0 {
		t.Errorf("small circles: got %v, want no problems", problems)
	}
	checkTooComplex(t, circle(200), circle(199))
}

// TestCheckBoundsItsPairs compares n types with n other types each.
func TestCheckBoundsItsPairs(t *testing.T) {
	t.Parallel()
	reader := func(n int) *avro.Schema {
		return mustParse(t, record("Top", repeat(n, func(i int) string {
			return fmt.Sprintf(`{"name":"f%d","type":{"type":"record","name":"v%d.V","fields":[{"name":"u",`+
				`"type":{"type":"record","name":"n%d.C","fields":[]}}]}}`, i, i, i)
		})))
	}
	writer := func(n int) *avro.Schema {
		return mustParse(t, record("Top",
			`{"name":"f0","type":{"type":"record","name":"w.V","fields":[{"name":"u","type":[`+
				repeat(n, func(i int) string { return fmt.Sprintf(`{"type":"record","name":"n%d.C","fields":[]}`, i) })+
				`]}]}}`,
			repeat(n-1, func(i int) string { return fmt.Sprintf(`{"name":"f%d","type":"w.V"}`, i+1) })))
	}
	if problems := problemsOf(reader(100), writer(100)); len(problems) != 0 {
		t.Errorf("few pairs: got %v, want no problems", problems)
	}
	checkTooComplex(t, reader(800), writer(800))
}

func checkTooComplex(t *testing.T, reader, writer *avro.Schema) {
	t.Helper()
	problems := problemsOf(reader, writer)
	if len(problems) != 1 || problems[0].Type != avro.LimitExceeded ||
		!strings.Contains(problems[0].Describe("new", "old"), "too large or too deeply linked to be compared") {
		t.Errorf("got %d problems, %.300v, want only LIMIT_EXCEEDED", len(problems), problems)
	}
}

// TestOmittedFieldsAreCheap checks that the cost of a missing field does not depend on the
// size of its union. It is not parallel, because it measures time and memory.
func TestOmittedFieldsAreCheap(t *testing.T) {
	var branches strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&branches, `{"type":"fixed","name":"F%d","size":1},`, i)
	}
	s := mustParse(t, `{"type":"array","items":{"type":"record","name":"R","fields":[{"name":"f","type":[`+
		branches.String()+`"null"]}]}}`)
	message := []byte("[" + strings.TrimSuffix(strings.Repeat("{},", 1_000_000), ",") + "]")
	checkCost(t, "validating a million empty records", func() {
		if err := s.ValidateJSON(message); err != nil {
			t.Error(err)
		}
	})
}
