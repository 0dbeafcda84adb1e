package avro_test

import (
	"testing"
)

// order is a schema of a common size, about a kilobyte.
const order = `{"type":"record","name":"Order","namespace":"com.example.shop","doc":"An order as the shop sends it",
 "fields":[
  {"name":"id","type":{"type":"string","logicalType":"uuid"},"doc":"unique"},
  {"name":"placed","type":{"type":"long","logicalType":"timestamp-millis"}},
  {"name":"state","type":{"type":"enum","name":"State","symbols":["NEW","PAID","SENT","DONE"],"default":"NEW"},
    "default":"NEW"},
  {"name":"customer","type":{"type":"record","name":"Customer","fields":[
    {"name":"name","type":"string"},
    {"name":"mail","type":["null","string"],"default":null},
    {"name":"address","type":["null",{"type":"record","name":"Address","fields":[
      {"name":"street","type":"string"},{"name":"city","type":"string"},
      {"name":"zip","type":"string","default":""}]}],"default":null}]}},
  {"name":"lines","type":{"type":"array","items":{"type":"record","name":"Line","fields":[
    {"name":"sku","type":"string"},{"name":"count","type":"int","default":1},
    {"name":"price","type":{"type":"bytes","logicalType":"decimal","precision":10,"scale":2}}]}}},
  {"name":"tags","type":{"type":"map","values":"string"},"default":{}},
  {"name":"parent","type":["null","Order"],"default":null}]}`

func BenchmarkParse(b *testing.B) {
	b.SetBytes(int64(len(order)))
	b.ReportAllocs()
	for b.Loop() {
		mustParse(b, order)
	}
}

func BenchmarkCheck(b *testing.B) {
	reader, writer := mustParse(b, order), mustParse(b, order)
	b.ReportAllocs()
	for b.Loop() {
		if problems := problemsOf(reader, writer); len(problems) > 0 {
			b.Fatal(problems)
		}
	}
}

func BenchmarkDecodeDatum(b *testing.B) {
	s := mustParse(b, record("R", `{"name":"id","type":"long"}`, `{"name":"name","type":["null","string"]}`,
		`{"name":"xs","type":{"type":"array","items":"int"}}`))
	data := append([]byte{2, 2, 8, 'n', 'a', 'm', 'e', 200, 1}, make([]byte, 101)...)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := s.DecodeDatum(data); err != nil {
			b.Fatal(err)
		}
	}
}
