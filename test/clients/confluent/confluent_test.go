// Package confluent_test tests the registry with Confluent's Go client and its Avro, JSON
// and Protobuf serializers, and the Kafka protocol with librdkafka, which that client uses.
//
// It is a separate module, because these need cgo. FRESHET_SERVER and FRESHET_TOKEN select
// the registry, which must have no versions under the subjects used here; FRESHET_STREAM,
// FRESHET_STREAM_TLS and FRESHET_CA select the Kafka listeners. The tests of the parent
// folder start the server and run these tests.
package confluent_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/rest"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde/avrov2"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde/jsonschema"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde/protobuf"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/test"
	"google.golang.org/protobuf/proto"
)

func newClient(t *testing.T) schemaregistry.Client {
	t.Helper()
	url, token := os.Getenv("FRESHET_SERVER"), os.Getenv("FRESHET_TOKEN")
	if url == "" {
		t.Skip("FRESHET_SERVER is not set")
	}
	client, err := schemaregistry.NewClient(schemaregistry.NewConfigWithBasicAuthentication(url, "placeholder", token))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func code(err error) int {
	var rest *rest.Error
	if errors.As(err, &rest) {
		return rest.Code
	}
	return 0
}

func TestBearer(t *testing.T) {
	newClient(t)
	client, err := schemaregistry.NewClient(schemaregistry.NewConfigWithBearerAuthentication(os.Getenv("FRESHET_SERVER"),
		os.Getenv("FRESHET_TOKEN"), "lsrc-1", "pool-1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.GetAllSubjects(); err != nil {
		t.Error(err)
	}
}

func TestClient(t *testing.T) {
	client := newClient(t)
	const subject = "confluent-go-client"
	one := schemaregistry.SchemaInfo{Schema: `{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}`}
	two := schemaregistry.SchemaInfo{Schema: `{"type":"record","name":"R","fields":[` +
		`{"name":"a","type":"string"},{"name":"b","type":"int","default":0}]}`}
	bad := schemaregistry.SchemaInfo{Schema: `{"type":"record","name":"R","fields":[` +
		`{"name":"a","type":"string"},{"name":"b","type":"int"}]}`}
	id, err := client.Register(subject, one, false)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := client.GetBySubjectAndID(subject, id); err != nil || got.Schema != one.Schema {
		t.Errorf("by id: %+v %v", got, err)
	}
	if got, err := client.GetID(subject, one, false); err != nil || got != id {
		t.Errorf("lookup: %d %v", got, err)
	}
	if ok, err := client.TestCompatibility(subject, 1, two); err != nil || !ok {
		t.Errorf("compatible: %t %v", ok, err)
	}
	if ok, err := client.TestSubjectCompatibility(subject, bad); err != nil || ok {
		t.Errorf("incompatible: %t %v", ok, err)
	}
	if _, err := client.Register(subject, bad, false); code(err) != 409 {
		t.Errorf("registering an incompatible schema: %v", err)
	}
	second, err := client.Register(subject, two, true)
	if err != nil || second == id {
		t.Errorf("second: %d %v", second, err)
	}
	if latest, err := client.GetLatestSchemaMetadata(subject); err != nil || latest.Version != 2 ||
		latest.ID != second {
		t.Errorf("latest: %+v %v", latest, err)
	}
	if versions, err := client.GetAllVersions(subject); err != nil || !slices.Equal(versions, []int{1, 2}) {
		t.Errorf("versions: %v %v", versions, err)
	}
	if at, err := client.GetSubjectsAndVersionsByID(id); err != nil || len(at) != 1 || at[0].Subject != subject ||
		at[0].Version != 1 {
		t.Errorf("by id: %v %v", at, err)
	}
	if subjects, err := client.GetAllSubjects(); err != nil || !slices.Contains(subjects, subject) {
		t.Errorf("subjects: %v %v", subjects, err)
	}
	if level, err := client.UpdateCompatibility(subject, schemaregistry.FullTransitive); err != nil ||
		level != schemaregistry.FullTransitive {
		t.Errorf("set the level: %v %v", level, err)
	}
	if level, err := client.GetCompatibility(subject); err != nil || level != schemaregistry.FullTransitive {
		t.Errorf("level: %v %v", level, err)
	}
	if n, err := client.DeleteSubjectVersion(subject, 1, false); err != nil || n != 1 {
		t.Errorf("delete a version: %d %v", n, err)
	}
	if got, err := client.GetSchemaMetadataIncludeDeleted(subject, 1, true); err != nil || got.ID != id {
		t.Errorf("deleted version: %+v %v", got, err)
	}
	if gone, err := client.DeleteSubject(subject, false); err != nil || !slices.Equal(gone, []int{2}) {
		t.Errorf("delete: %v %v", gone, err)
	}
	if gone, err := client.DeleteSubject(subject, true); err != nil || !slices.Equal(gone, []int{1, 2}) {
		t.Errorf("permanent delete: %v %v", gone, err)
	}
	if _, err := client.GetLatestSchemaMetadata("confluent-go-unknown"); code(err) != 40401 {
		t.Errorf("unknown subject: %v", err)
	}
	if _, err := client.GetAllContexts(); code(err) != 404 {
		t.Errorf("contexts: %v", err)
	}
}

type order struct {
	ID     int64  `avro:"id" json:"id"`
	Amount int    `avro:"amount" json:"amount"`
	Note   string `avro:"note" json:"note"`
}

func TestAvroSerde(t *testing.T) {
	client := newClient(t)
	conf := avrov2.NewSerializerConfig()
	conf.NormalizeSchemas = true
	ser, err := avrov2.NewSerializer(client, serde.ValueSerde, conf)
	if err != nil {
		t.Fatal(err)
	}
	want := order{ID: 7, Amount: 3, Note: "<&> €"}
	data, err := ser.Serialize("confluent-go-avro", &want)
	if err != nil {
		t.Fatal(err)
	}
	if data[0] != 0 || len(data) < 6 {
		t.Errorf("frame %v", data)
	}
	de, err := avrov2.NewDeserializer(newClient(t), serde.ValueSerde, avrov2.NewDeserializerConfig())
	if err != nil {
		t.Fatal(err)
	}
	var got order
	if err := de.DeserializeInto("confluent-go-avro", data, &got); err != nil || got != want {
		t.Errorf("%+v %v", got, err)
	}
}

func TestAvroSerdeWithReferences(t *testing.T) {
	client := newClient(t)
	address := `{"type":"record","name":"Address","namespace":"geo","fields":[{"name":"street","type":"string"}]}`
	if _, err := client.Register("confluent-go-address", schemaregistry.SchemaInfo{Schema: address, SchemaType: "AVRO"},
		false); err != nil {
		t.Fatal(err)
	}
	person := schemaregistry.SchemaInfo{
		Schema: `{"type":"record","name":"Person","namespace":"geo","fields":[` +
			`{"name":"name","type":"string"},{"name":"address","type":"Address"}]}`,
		SchemaType: "AVRO",
		References: []schemaregistry.Reference{{Name: "geo.Address", Subject: "confluent-go-address", Version: 1}},
	}
	if _, err := client.Register("confluent-go-person-value", person, false); err != nil {
		t.Fatal(err)
	}
	conf := avrov2.NewSerializerConfig()
	conf.AutoRegisterSchemas = false
	conf.UseLatestVersion = true
	ser, err := avrov2.NewSerializer(client, serde.ValueSerde, conf)
	if err != nil {
		t.Fatal(err)
	}
	type addressValue struct {
		Street string `avro:"street"`
	}
	type personValue struct {
		Name    string       `avro:"name"`
		Address addressValue `avro:"address"`
	}
	want := personValue{Name: "n", Address: addressValue{Street: "s"}}
	data, err := ser.Serialize("confluent-go-person", &want)
	if err != nil {
		t.Fatal(err)
	}
	de, err := avrov2.NewDeserializer(newClient(t), serde.ValueSerde, avrov2.NewDeserializerConfig())
	if err != nil {
		t.Fatal(err)
	}
	var got personValue
	if err := de.DeserializeInto("confluent-go-person", data, &got); err != nil || got != want {
		t.Errorf("%+v %v", got, err)
	}
}

func TestJSONSerde(t *testing.T) {
	client := newClient(t)
	conf := jsonschema.NewSerializerConfig()
	conf.EnableValidation = true
	ser, err := jsonschema.NewSerializer(client, serde.ValueSerde, conf)
	if err != nil {
		t.Fatal(err)
	}
	want := order{ID: 7, Amount: 3, Note: "x"}
	data, err := ser.Serialize("confluent-go-json", &want)
	if err != nil {
		t.Fatal(err)
	}
	de, err := jsonschema.NewDeserializer(newClient(t), serde.ValueSerde, jsonschema.NewDeserializerConfig())
	if err != nil {
		t.Fatal(err)
	}
	var got order
	if err := de.DeserializeInto("confluent-go-json", data, &got); err != nil || got != want {
		t.Errorf("%+v %v", got, err)
	}
	if latest, err := client.GetLatestSchemaMetadata("confluent-go-json-value"); err != nil ||
		latest.SchemaType != "JSON" {
		t.Errorf("%+v %v", latest, err)
	}
}

// TestProtobufSerde checks that the serializer registers imported files under their own
// subjects, except those that every registry knows.
func TestProtobufSerde(t *testing.T) {
	client := newClient(t)
	for topic, want := range map[string]proto.Message{
		"confluent-go-proto": &test.Author{Name: "Kafka", Id: 123, Works: []string{"The Castle"}},
		"confluent-go-proto-import": &test.DependencyMessage{
			IsActive:     true,
			TestMesssage: &test.TestMessage{TestString: "hi", TestBool: true, TestBytes: []byte{1, 2}},
		},
		"confluent-go-proto-nested": &test.NestedMessage{},
	} {
		ser, err := protobuf.NewSerializer(client, serde.ValueSerde, protobuf.NewSerializerConfig())
		if err != nil {
			t.Fatal(err)
		}
		data, err := ser.Serialize(topic, want)
		if err != nil {
			t.Errorf("%s: %v", topic, err)
			continue
		}
		de, err := protobuf.NewDeserializer(newClient(t), serde.ValueSerde, protobuf.NewDeserializerConfig())
		if err != nil {
			t.Fatal(err)
		}
		if err := de.ProtoRegistry.RegisterMessage(want.ProtoReflect().Type()); err != nil {
			t.Fatal(err)
		}
		got, err := de.Deserialize(topic, data)
		if err != nil {
			t.Errorf("%s: %v", topic, err)
			continue
		}
		if m, ok := got.(proto.Message); !ok || !proto.Equal(m, want) {
			t.Errorf("%s: %v, want %v", topic, got, want)
		}
	}
	latest, err := client.GetLatestSchemaMetadata("confluent-go-proto-import-value")
	if err != nil || latest.SchemaType != "PROTOBUF" || len(latest.References) == 0 ||
		!strings.Contains(latest.Schema, "DependencyMessage") {
		t.Errorf("%+v %v", latest, err)
	}
}
