package schemas_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"freshet.dev/client"
	"freshet.dev/client/schemas"
)

const (
	order1 = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}`
	order2 = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"note","type":"string"}]}`
	order3 = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},` +
		`{"name":"note","type":"string","default":""}]}`
)

func TestRegistry(t *testing.T) {
	t.Parallel()
	ctx, r, subject := t.Context(), registry(t), "life-value"
	id := must[int](t)(r.Register(ctx, subject, schemas.Schema{Text: order1}))
	if again := must[int](t)(r.RegisterNormalized(ctx, subject, schemas.Schema{Text: order1})); again < id {
		t.Errorf("registered again: got id %d, want at least %d", again, id)
	}
	if err := r.SetLevel(ctx, subject, "FULL"); err != nil {
		t.Fatal(err)
	}
	if got := must[string](t)(r.Level(ctx, subject)); got != "FULL" {
		t.Errorf("level: got %s, want FULL", got)
	}
	if _, err := r.Register(ctx, subject, schemas.Schema{Text: order2}); !errors.Is(err, client.ErrConflict) {
		t.Errorf("incompatible: got %v, want ErrConflict", err)
	}
	must[int](t)(r.Register(ctx, subject, schemas.Schema{Text: order3}))
	latest := must[*schemas.Version](t)(r.Version(ctx, subject, schemas.Latest))
	if latest.Type != schemas.Avro || latest.Subject != subject || !strings.Contains(latest.Text, "note") {
		t.Errorf("latest: got %+v", latest)
	}
	if found := must[*schemas.Version](t)(r.Lookup(ctx, subject, schemas.Schema{Text: order1})); found.Version != 1 ||
		found.ID != id {
		t.Errorf("Lookup: got %+v, want version 1 with id %d", found, id)
	}
	if found := must[[]schemas.SubjectVersion](t)(r.SubjectVersions(ctx, id)); !slices.Contains(found,
		schemas.SubjectVersion{Subject: subject, Version: 1}) {
		t.Errorf("SubjectVersions of id %d: got %v, want it to contain version 1 of %s", id, found, subject)
	}
	if subjects := must[[]string](t)(r.Subjects(ctx, false)); !slices.Contains(subjects, subject) {
		t.Errorf("subjects: got %v", subjects)
	}
	if got := must[string](t)(r.Mode(ctx)); got != "READWRITE" {
		t.Errorf("mode: got %s", got)
	}

	if _, err := r.DeleteSubject(ctx, subject, true); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("permanent delete before a soft delete: got %v, want ErrNotFound", err)
	}
	if got := must[int](t)(r.DeleteVersion(ctx, subject, schemas.Latest, false)); got != latest.Version {
		t.Errorf("deleted version %d, want %d", got, latest.Version)
	}
	if got := must[[]int](t)(r.Versions(ctx, subject, true)); len(got) != latest.Version {
		t.Errorf("versions including deleted ones: got %v, want %d", got, latest.Version)
	}
	must[*schemas.Version](t)(r.DeletedVersion(ctx, subject, latest.Version))
	must[[]int](t)(r.DeleteSubject(ctx, subject, false))
	must[[]int](t)(r.DeleteSubject(ctx, subject, true))
	var refused *client.Error
	if _, err := r.Version(ctx, subject, schemas.Latest); !errors.As(err, &refused) || refused.Code != 40401 {
		t.Errorf("after the permanent delete: got %v, want code 40401", err)
	}
	if _, err := r.Version(ctx, "", 1); err == nil {
		t.Error("no subject: got no error")
	}
}

func TestCheckReportsProblems(t *testing.T) {
	t.Parallel()
	ctx, r := t.Context(), registry(t)
	must[int](t)(r.Register(ctx, "why-value", schemas.Schema{Text: order1}))
	got := must[*schemas.Compatibility](t)(r.Check(ctx, "why-value", schemas.Schema{Text: order2}))
	if got.Compatible || got.Level != "BACKWARD" || got.Against != 1 || len(got.Problems) != 1 {
		t.Fatalf("got %+v, want one problem with version 1 at BACKWARD", got)
	}
	p := got.Problems[0]
	if p.Type != "READER_FIELD_MISSING_DEFAULT_VALUE" || p.Info != "note" ||
		!strings.HasPrefix(p.Description, "The field 'note'") {
		t.Errorf("problem: got %+v", p)
	}
	if got := must[*schemas.Compatibility](t)(r.CheckVersion(ctx, "why-value", 1,
		schemas.Schema{Text: order3})); !got.Compatible || len(got.Problems) != 0 {
		t.Errorf("with a default: got %+v", got)
	}
	if got := must[*schemas.Compatibility](t)(r.Check(ctx, "why-value",
		schemas.Schema{Text: "nonsense"})); got.Compatible || len(got.Problems) != 1 ||
		got.Problems[0].Description == "" {
		t.Errorf("text that is not a schema: got %+v", got)
	}
	proto := schemas.Schema{Type: schemas.Protobuf, Text: `syntax = "proto3"; message A { string x = 1; }`}
	must[int](t)(r.Register(ctx, "why-proto", proto))
	proto.Text = `syntax = "proto3"; message A { int64 x = 1; }`
	if got := must[*schemas.Compatibility](t)(r.Check(ctx, "why-proto", proto)); len(got.Problems) != 1 ||
		got.Problems[0].Type != "FIELD_SCALAR_KIND_CHANGED" || got.Problems[0].Description == "" {
		t.Errorf("Protobuf: got %+v", got)
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	ctx, r := t.Context(), registry(t)
	must[int](t)(r.Register(ctx, "diff-value", schemas.Schema{Text: order1}))
	got := must[*schemas.Difference](t)(r.Diff(ctx,
		schemas.Side{Subject: "diff-value", Version: 1},
		schemas.Side{Subject: "diff-value", Draft: &schemas.Schema{Text: order2}}))
	if len(got.Changes) != 1 || got.Backward.Compatible || !got.Forward.Compatible {
		t.Errorf("got %+v, want one change that is forward compatible only", got)
	}
}

func TestExportAndImport(t *testing.T) {
	t.Parallel()
	ctx, r := t.Context(), registry(t)
	must[int](t)(r.Register(ctx, "export-value", schemas.Schema{Text: order1}))
	var file bytes.Buffer
	if err := r.Export(ctx, &file); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(file.String(), "export-value") {
		t.Errorf("the export does not contain the subject: %s", file.String())
	}
	done := must[*schemas.Imported](t)(r.Import(ctx, bytes.NewReader(file.Bytes())))
	if done.Versions != 0 || done.Known == 0 {
		t.Errorf("imported into its own registry: got %+v, want no version written", done)
	}
}

func TestCodec(t *testing.T) {
	t.Parallel()
	ctx, r := t.Context(), registry(t)
	must[int](t)(r.Register(ctx, "codec-customer",
		schemas.Schema{Text: `{"type":"record","name":"Customer","fields":[{"name":"name","type":"string"}]}`}))
	must[int](t)(r.Register(ctx, "codec-address.json",
		schemas.Schema{
			Type: schemas.JSON,
			Text: `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`,
		}))
	must[int](t)(r.Register(ctx, "codec-money.proto",
		schemas.Schema{
			Type: schemas.Protobuf,
			Text: `syntax = "proto3"; package shop; message Money { int64 cents = 1; }`,
		}))
	for _, c := range []struct {
		name   string
		schema schemas.Schema
		in     string
		out    string // "" means the same as in
		bad    string
	}{
		{
			"avro",
			schemas.Schema{
				Text: `{"type":"record","name":"Order","fields":[` +
					`{"name":"id","type":"long"},{"name":"customer","type":"Customer"},` +
					`{"name":"note","type":["null","string"],"default":null},` +
					`{"name":"raw","type":"bytes","default":""}]}`,
				References: []schemas.Reference{{Name: "Customer", Subject: "codec-customer", Version: 1}},
			},
			`{"id":9007199254740993,"customer":{"name":"Ann"},"note":"fragile","raw":"ÿ"}`, "",
			`{"id":"seven","customer":{"name":"Ann"}}`,
		},
		{
			"json",
			schemas.Schema{
				Type: schemas.JSON,
				Text: `{"type":"object","properties":{"address":{"$ref":"address.json"}},` +
					`"required":["address"]}`,
				References: []schemas.Reference{{Name: "address.json", Subject: "codec-address.json", Version: 1}},
			},
			`{"address":{"city":"Ulm"}}`, "", `{"address":{}}`,
		},
		{
			"protobuf",
			schemas.Schema{
				Type: schemas.Protobuf,
				Text: `syntax = "proto3"; package shop; ` +
					`import "money.proto"; import "google/protobuf/timestamp.proto"; ` +
					`message Invoice { Money total = 1; google.protobuf.Timestamp at = 2; }`,
				References: []schemas.Reference{{Name: "money.proto", Subject: "codec-money.proto", Version: 1}},
			},
			`{"total":{"cents":"1250"},"at":"2026-01-31T12:00:00Z"}`, "", `{"total":{"euros":1}}`,
		},
		{
			"protobuf-builtin", // imports files that every registry provides
			schemas.Schema{
				Type: schemas.Protobuf,
				Text: `syntax = "proto3"; package shop; import "google/type/money.proto"; ` +
					`import "confluent/meta.proto"; import "confluent/type/decimal.proto"; ` +
					`message Price { google.type.Money money = 1; confluent.type.Decimal exact = 2; }`,
			},
			`{"money":{"currencyCode":"EUR","units":"12"},"exact":{"value":"BNI=","precision":6,"scale":2}}`, "",
			`{"money":{"euros":1}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			subject := "codec-" + c.name
			id := must[int](t)(r.Register(ctx, subject, c.schema))
			codec := schemas.NewCodec(r)
			data := must[[]byte](t)(codec.EncodeJSON(ctx, subject, []byte(c.in)))
			if got, _, ok := schemas.SplitID(data); !ok || got != id {
				t.Errorf("id: got %d, want %d", got, id)
			}
			text, got, err := codec.DecodeJSON(ctx, data)
			if err != nil || got != id {
				t.Fatalf("got id %d, %v, want %d", got, err, id)
			}
			var want, have any
			if err := errors.Join(jsonValue(c.in, &want), jsonValue(string(text), &have)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, have); diff != "" {
				t.Errorf("encoded and decoded (-want +got):\n%s", diff)
			}
			var value map[string]any
			if err := codec.Decode(ctx, data, &value); err != nil {
				t.Fatal(err)
			}
			if again := must[[]byte](t)(codec.Encode(ctx, subject, value)); !bytes.Equal(again, data) &&
				c.name != "json" {
				t.Errorf("decoded into a map and encoded again: got %x, want %x", again, data)
			}
			if _, err := codec.EncodeJSON(ctx, subject, []byte(c.bad)); err == nil {
				t.Errorf("%s: got no error", c.bad)
			}
			if _, _, err := codec.DecodeJSON(ctx, data[:5]); err == nil && c.schema.Type != schemas.Protobuf {
				t.Error("truncated payload: got no error")
			}
		})
	}
	if _, _, err := schemas.NewCodec(r).DecodeJSON(ctx, []byte("plain")); !errors.Is(err, schemas.ErrNoID) {
		t.Errorf("payload without an id: got %v, want ErrNoID", err)
	}
}

func jsonValue(text string, into *any) error {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(into)
}
