package filter_test

import (
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"testing"

	"freshet/internal/broker/filter"
	"freshet/test/tally"
)

// TestAttackExpressions compiles expressions that would be costly to compile or to evaluate for
// every message.
func TestAttackExpressions(t *testing.T) {
	t.Parallel()
	texts := []string{
		strings.Repeat("(", 2000) + "true" + strings.Repeat(")", 2000),
		strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + " == payload",
		"payload" + strings.Repeat(".a", 5000) + " == 1",
		`payload.all(a, payload.all(b, payload.all(c, a == b && b == c)))`,
		`payload.map(a, payload.map(b, [a, b])) == []`,
		`key.matches("(\\pL{30}){30}")`,
		`key.matches("(((a{10}){10}){9}){10}")`,
		`key.matches(payload.pattern)`,
		`"x".matches(key + key)`,
	}
	accepted := 0
	for _, text := range texts {
		if _, err := filter.Compile(text); !errors.Is(err, filter.ErrExpression) {
			accepted++
			t.Errorf("%.60s: got %v, want ErrExpression", text, err)
		}
	}
	tally.Attack(t, "filter that is too costly to compile", len(texts), accepted)
}

// TestAttackPayloads evaluates expressions for payloads that were made to cost as much as possible.
// Each must end with an error within the limits, which the memory that it allocates shows.
func TestAttackPayloads(t *testing.T) { //nolint:paralleltest // measures the memory of the process
	const size = 4 << 20
	many := `{"a":[` + strings.Repeat("0,", size/2) + `0]}`
	large := `{"a":"` + strings.Repeat("x", size) + `"}`
	few := `{"a":[` + strings.Repeat("0,", 90_000) + `0]}`
	nulls := avroSchema(t, `{"type":"array","items":"null"}`)
	self := avroSchema(t, `{"type":"record","name":"R","fields":[{"name":"r","type":["null","R"]}]}`)
	infinite := avroSchema(t,
		`{"type":"record","name":"R","fields":[{"name":"r","type":"R"},{"name":"x","type":"int"}]}`)
	longest := "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01" // 2^63-1 items
	cases := []struct {
		text    string
		payload string
		topic   *filter.Schema
	}{
		{`payload.a.exists(x, x == 1)`, many, nil},
		{`payload.a.map(x, payload.a) == []`, few, nil},
		{`payload.a.all(x, size(payload.a) > 0)`, few, nil},
		{`payload.a.all(x, x in payload.a)`, few, nil},
		{`payload.a.filter(x, payload.a == payload.a) == []`, few, nil},
		{`payload.a.all(x, !key.contains("ab"))`, few, nil},
		{`payload.a.all(x, !("` + strings.Repeat("x", 3000) + `".matches("(x+x+)+y")))`, few, nil},
		{strings.Repeat(`payload.a.matches("(x+x+)+y") || `, 20) + "false", large, nil},
		{`payload == 1`, strings.Repeat("[", size), nil},
		{`payload == 1`, strings.Repeat(`{"a":`, size/5), nil},
		{`payload.a == 1`, `{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`, nil},
		{`payload == 1`, "1" + strings.Repeat("0", size), nil},
		{`size(payload) > 0`, longest + "\x00", nulls},
		{`payload.x == 1`, "\x00", infinite},
		{`payload.r.r.r.r.r == null`, "\x02\x02\x02", self},
		{`payload == payload`, strings.Repeat("\x02", 20_000) + "\x00", self},
	}
	exceeded := 0
	for _, c := range cases {
		f, err := filter.Compile(c.text)
		if err != nil {
			t.Fatalf("%.60s: %v", c.text, err)
		}
		m := &filter.Message{Payload: []byte(c.payload), SchemaVersion: 0, Key: make([]byte, 1<<20)}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = f.Evaluator(t.Context(), schemas{topic: c.topic}).Match(m)
		runtime.ReadMemStats(&after)
		allocated := (after.TotalAlloc - before.TotalAlloc) >> 20
		t.Logf("%d MiB for %.60s of %d bytes: %v", allocated, c.text, len(c.payload), err)
		if err == nil || allocated > 256 {
			exceeded++
			t.Errorf("%.60s of %.20q: got %v after %d MiB, want an error within 256 MiB",
				c.text, c.payload, err, allocated)
		}
	}
	tally.Attack(t, "payload that is too costly to filter", len(cases), exceeded)
}

// FuzzMatch evaluates payloads and expressions of any kind. It looks for panics and endless loops.
func FuzzMatch(f *testing.F) {
	f.Add(`payload.total > 100.0`, []byte(`{"total":1}`), false)
	f.Add(`payload.lines.exists(l, l.count == 3)`, order, true)
	f.Add(`payload.a[0].b`, binary.AppendVarint(nil, -1<<63), true)
	all := schemas{avroSchema(f, orderSchema), avroSchema(f, orderSchema)}
	f.Fuzz(func(t *testing.T, text string, payload []byte, typed bool) {
		compiled, err := filter.Compile(text)
		if err != nil {
			return
		}
		m := &filter.Message{Payload: payload, SchemaVersion: -1, Headers: []filter.Header{{Name: payload}}}
		if typed {
			m.SchemaVersion = 0
		}
		matched, err := compiled.Evaluator(t.Context(), all).Match(m)
		if matched && err != nil {
			t.Errorf("%q: got a match and the error %v", text, err)
		}
	})
}
