package filter_test

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"freshet/internal/broker/filter"
)

// benchSchema has the field that the benchmarks read behind most of the record.
const benchSchema = `{"type":"record","name":"Order","fields":[
	{"name":"id","type":"long"},{"name":"customer","type":"string"},{"name":"note","type":"string"},
	{"name":"country","type":["null","string"]},{"name":"total","type":"double"},{"name":"paid","type":"boolean"}]}`

// benchOrder returns a datum of benchSchema of about a KiB.
func benchOrder(id int64, total float64) []byte {
	text := func(b []byte, s string) []byte { return append(binary.AppendVarint(b, int64(len(s))), s...) }
	b := binary.AppendVarint(nil, id)
	b = text(b, "customer-0123456789")
	b = text(b, strings.Repeat("a note of the order ", 48))
	b = text(append(b, 2), "CH")
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(total))
	return append(b, 1)
}

func BenchmarkMatch(b *testing.B) {
	orderJSON := []byte(`{"id":7,"customer":"customer-0123456789","note":"` +
		strings.Repeat("a note of the order ", 48) +
		`","country":"CH","total":99,"paid":true}`)
	for name, c := range map[string]struct {
		text    string
		payload []byte
		version int64
	}{
		"key":        {`key.startsWith("k")`, nil, -1},
		"avro":       {`payload.total > 100.0`, benchOrder(7, 99), 0},
		"avro-and":   {`payload.total < 100.0 && payload.country == "US"`, benchOrder(7, 99), 0},
		"avro-cheap": {`payload.total > 100.0 && key == "x"`, benchOrder(7, 99), 0},
		"json":       {`payload.total > 100`, orderJSON, -1},
		"loop":       {`[1, 2, 3].exists(x, payload.id == x)`, benchOrder(7, 99), 0},
	} {
		b.Run(name, func(b *testing.B) {
			f, err := filter.Compile(c.text)
			if err != nil {
				b.Fatal(err)
			}
			e := f.Evaluator(b.Context(), schemas{topic: avroSchema(b, benchSchema)})
			m := &filter.Message{Payload: c.payload, Key: []byte("another"), SchemaVersion: c.version}
			b.SetBytes(int64(len(c.payload)))
			b.ReportAllocs()
			for b.Loop() {
				if matched, err := e.Match(m); matched || err != nil {
					b.Fatalf("got %t, %v, want false", matched, err)
				}
			}
		})
	}
}

func BenchmarkCompileContract(b *testing.B) {
	for name, text := range map[string]string{
		"small": `payload.total >= 0`,
		"large": strings.TrimSuffix(strings.Repeat(`payload.a.b[1] == "x" && `, 79), " && "),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := filter.CompileContract(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
