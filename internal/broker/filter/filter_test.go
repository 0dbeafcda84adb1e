package filter_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"freshet/internal/broker/filter"
	"freshet/internal/registry/avro"
)

// schemas has one topic schema, version 0, and one registered schema, id 7.
type schemas struct{ topic, registered *filter.Schema }

func (s schemas) TopicSchema(_ context.Context, version int64) (*filter.Schema, error) {
	if version < 0 {
		return nil, nil
	}
	if version != 0 {
		return nil, errors.New("version is not in the history")
	}
	return s.topic, nil
}

func (s schemas) RegisteredSchema(_ context.Context, id int32) (*filter.Schema, error) {
	if id != 7 {
		return nil, nil
	}
	return s.registered, nil
}

const orderSchema = `{"type":"record","name":"Order","fields":[
	{"name":"note","type":"string"},
	{"name":"lines","type":{"type":"array","items":{"type":"record","name":"Line","fields":[
		{"name":"sku","type":"string"},{"name":"count","type":"int"}]}}},
	{"name":"total","type":"double"},
	{"name":"customer","type":["null",{"type":"record","name":"Customer","fields":[
		{"name":"name","type":"string"},{"name":"tags","type":{"type":"map","values":"long"}}]}]},
	{"name":"state","type":{"type":"enum","name":"State","symbols":["NEW","PAID"]}},
	{"name":"price","type":{"type":"bytes","logicalType":"decimal","precision":8,"scale":2}}]}`

// order is a datum of orderSchema.
var order = []byte("\x06abc" + // note
	"\x04\x02a\x04\x02b\x06\x00" + // lines: a 2, b 3
	"\x00\x00\x00\x00\x00\x40\x59\x40" + // total: 101
	"\x02\x06Ann\x02\x02x\x0e\x00" + // customer: Ann with x 7
	"\x02" + // state: PAID
	"\x04\xff\x38") // price: -2.00

func avroSchema(t testing.TB, text string) *filter.Schema {
	t.Helper()
	parsed, err := avro.Parse(text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return filter.Avro(parsed)
}

func match(t testing.TB, text string, m *filter.Message, s filter.Schemas) (bool, error) {
	t.Helper()
	f, err := filter.Compile(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return f.Evaluator(t.Context(), s).Match(m)
}

func TestMatch(t *testing.T) {
	t.Parallel()
	json := func(text string) *filter.Message { return &filter.Message{Payload: []byte(text), SchemaVersion: -1} }
	full := &filter.Message{
		Payload: []byte("hello"), Key: []byte("k-1"), SchemaVersion: -1, PublishTime: 1_700_000_000_000,
		Producer: "shop", Partition: 3, Offset: 42,
		Headers: []filter.Header{
			{Name: []byte("trace"), Value: []byte("1")},
			{Name: []byte("trace"), Value: []byte("2")},
			{Name: []byte("none"), Null: true},
		},
	}
	withSchema := &filter.Message{Payload: order, SchemaVersion: 0}
	registered := &filter.Message{Payload: append([]byte{0, 0, 0, 0, 7}, order...), SchemaVersion: -1}
	deep := json(strings.Repeat(`[`, 600) + strings.Repeat(`]`, 600))
	all := schemas{avroSchema(t, orderSchema), avroSchema(t, orderSchema)}
	for _, c := range []struct {
		text string
		m    *filter.Message
		want string // "true", "false" or a part of the error
	}{
		{`key.startsWith("k")`, full, "true"},
		{`key == "k" || payload == "hello"`, full, "true"},
		{`payload == "hello" && size == 5 && partition == 3 && offset > 41 && producer == "shop"`, full, "true"},
		{`properties["trace"] == "2"`, full, "true"},
		{`properties.trace == "2"`, full, "true"},
		{`"none" in properties || "other" in properties`, full, "false"},
		{`has(properties.trace) && !has(properties.other)`, full, "true"},
		{`size(properties) == 1 && properties.all(name, name == "trace")`, full, "true"},
		{`headers.exists(h, h.name == "trace" && h.value == "1")`, full, "true"},
		{`headers[2].value == null`, full, "true"},
		{`publishTime > timestamp("2023-01-01T00:00:00Z") && eventTime == publishTime`, full, "true"},
		{`payload.total > 100`, full, "no such"},

		{
			`payload.total > 100 && payload.id == 9007199254740993`,
			json(`{"id":9007199254740993,"total":100.5}`), "true",
		},
		{`payload.a.b[1].c == "x\u00fc"`, json(`{"a":{"b":[0,{"c":"x\u00fc"}]}}`), "true"},
		{`payload.a == 2`, json(`{"a":1,"a":2}`), "true"},
		{`payload.missing == 1`, json(`{"a":1}`), "no such key"},
		{`has(payload.missing) || payload.a == 1`, json(`{"a":1}`), "true"},
		{`payload.missing == 1 || key == ""`, json(`{"a":1}`), "true"},
		{`payload["a b"] && payload.n == null`, json(` {"a b" : true , "n":null } `), "true"},
		{`payload == {"a": [1, {"b": "c"}]}`, json(`{"a":[1,{"b":"c"}]}`), "true"},
		{`{"a": [1, {"b": "c"}]} == payload`, json(`{"a":[1,{"b":"c"}]}`), "true"},
		{`payload.list.exists(x, x > 2) && size(payload.list) == 3`, json(`{"list":[1,2,3]}`), "true"},
		{`payload.all(k, payload[k] > 0)`, json(`{"a":1,"b":2}`), "true"},
		{`payload == 12 && payload < 12.5`, json(`12`), "true"},
		{`payload.matches("^[a-c]+$")`, json(`"abc"`), "true"},
		{`payload.startsWith("{")`, json(`{"a":`), "true"}, // not JSON, so it is text
		{`payload == b"\xff\x00"`, json("\xff\x00"), "true"},
		{`payload == null`, &filter.Message{NullPayload: true, SchemaVersion: -1}, "true"},
		{`payload.x == 1`, json(`{"x":1e400}`), "false"},
		{`payload.x == 1`, json(`{"x":` + strings.Repeat("1", 500) + `}`), "number of the payload"},
		{`payload.x == 1`, deep, "nested too deeply"},
		{`payload`, json(`true`), "true"},
		{`payload`, json(`1`), "must be true or false"},

		{`payload.total > 100 && payload.note == "abc"`, withSchema, "true"},
		{`payload.lines[1].sku == "b" && payload.lines.exists(l, l.count == 3)`, withSchema, "true"},
		{`payload.customer.name == "Ann" && payload.customer.tags.x == 7`, withSchema, "true"},
		{`"y" in payload.customer.tags`, withSchema, "false"},
		{`payload.state == "PAID" && payload.price < -1.99 && payload.price > -2.01`, withSchema, "true"},
		{`payload.total > 100`, registered, "true"},
		{`payload.total > 100`, &filter.Message{Payload: []byte{0, 0, 0, 0, 9, 1}, SchemaVersion: -1}, "no such"},
		{`payload.total > 100`, &filter.Message{Payload: order[:8], SchemaVersion: 0}, "datum ends"},
		{`payload.total > 100`, &filter.Message{Payload: order, SchemaVersion: 5}, "version is not in the history"},
	} {
		got, err := match(t, c.text, c.m, all)
		switch {
		case c.want == "true" || c.want == "false":
			if err != nil || got != (c.want == "true") {
				t.Errorf("%s of %.40q: got %t, %v, want %s", c.text, c.m.Payload, got, err, c.want)
			}
		case err == nil || !strings.Contains(err.Error(), c.want):
			t.Errorf("%s of %.40q: got %t, %v, want an error that contains %q", c.text, c.m.Payload, got, err, c.want)
		}
	}
}

func TestCompileRejects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"syntax":            {`payload.total >`, "Syntax error"},
		"unknown variable":  {`total > 1`, "undeclared reference to 'total'"},
		"type":              {`size + 1`, "its type is int"},
		"wrong operator":    {`key > 1`, "no matching overload"},
		"empty":             {``, "Syntax error"},
		"long":              {strings.Repeat(" ", filter.MaxExpression) + "true", "at most"},
		"deep":              {strings.Repeat("(", 200) + "true" + strings.Repeat(")", 200), "recursion"},
		"nested loops":      {`[1].all(x, [1].all(y, x == y))`, "nesting"},
		"regexp":            {`key.matches("(")`, "matches"},
		"large regexp":      {`key.matches("(\\pL{25}){25}")`, "too large"},
		"unknown regexp":    {`key.matches(payload.pattern)`, "must be a literal"},
		"unknown regexp ()": {`matches(key, producer)`, "must be a literal"},
	} {
		_, err := filter.Compile(c.text)
		if !errors.Is(err, filter.ErrExpression) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want ErrExpression with %q", name, err, c.want)
		}
	}
}

// TestProtobuf reads a FileDescriptorProto, whose own descriptor is linked into the test.
func TestProtobuf(t *testing.T) {
	t.Parallel()
	file := descriptorpb.File_google_protobuf_descriptor_proto
	payload, err := proto.Marshal(&descriptorpb.FileDescriptorProto{
		Name: new("shop.proto"), PublicDependency: []int32{4, 5},
		MessageType: []*descriptorpb.DescriptorProto{{Name: new("Order"), Field: []*descriptorpb.FieldDescriptorProto{
			{Name: new("total"), Type: descriptorpb.FieldDescriptorProto_TYPE_DOUBLE.Enum(), Number: new(int32(3))},
		}}},
		Options: &descriptorpb.FileOptions{JavaPackage: new("shop"), Deprecated: new(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	index := []byte{0, 0, 0, 0, 7, 2, 2} // one index: message 1 of the file
	all := schemas{
		filter.Protobuf((&descriptorpb.FileDescriptorProto{}).ProtoReflect().Descriptor()),
		filter.ProtobufFile(file),
	}
	for _, m := range []*filter.Message{
		{Payload: payload, SchemaVersion: 0},
		{Payload: append(index, payload...), SchemaVersion: -1},
	} {
		for _, text := range []string{
			`payload.name == "shop.proto" && !has(payload.package)`,
			`payload.message_type[0].name == "Order" && payload.messageType[0].field[0].number == 3`,
			`payload.message_type[0].field.exists(f, f.type == "TYPE_DOUBLE")`,
			`payload.public_dependency == [4, 5]`,
			`payload.options.java_package == "shop" && payload.options.deprecated`,
			`size(payload.dependency) == 0`,
		} {
			if got, err := match(t, text, m, all); !got || err != nil {
				t.Errorf("%s: got %t, %v, want true", text, got, err)
			}
		}
	}
	broken := &filter.Message{Payload: payload[:20], SchemaVersion: 0}
	if _, err := match(t, `payload.name == "x"`, broken, all); err == nil {
		t.Error("an incomplete message is decoded without an error")
	}
}

// TestErrorsStayWithTheirMessage evaluates a message after one that fails.
func TestErrorsStayWithTheirMessage(t *testing.T) {
	t.Parallel()
	f, err := filter.Compile(`payload.list.all(x, x > 0)`)
	if err != nil {
		t.Fatal(err)
	}
	e := f.Evaluator(t.Context(), nil)
	huge := `{"list":[` + strings.Repeat("1,", 200_000) + `1]}`
	if _, err := e.Match(&filter.Message{Payload: []byte(huge), SchemaVersion: -1}); err == nil {
		t.Error("a list of 200,001 elements is read without an error")
	}
	if ok, err := e.Match(&filter.Message{Payload: []byte(`{"list":[1]}`), SchemaVersion: -1}); !ok || err != nil {
		t.Errorf("the next message: got %t, %v, want true", ok, err)
	}
}
