package schemas_test

import (
	"encoding/base64"
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/durationpb"

	"freshet.dev/client"
	"freshet.dev/client/schemas"
)

// TestProducerWithSchema encodes values with a schema of the topic and with a schema of the registry, and reads them
// as JSON.
func TestProducerWithSchema(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := live(t, "", "")
	set := &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(
		durationpb.File_google_protobuf_duration_proto)}}
	files := base64.StdEncoding.EncodeToString(must[[]byte](t)(proto.Marshal(set)))
	native := fmt.Sprintf(
		`{"fileDescriptorSet":%q,"rootMessageTypeName":"google.protobuf.Duration",`+
			`"rootFileDescriptorName":"google/protobuf/duration.proto"}`, files)
	for _, k := range []struct {
		kind, text string
		value      any
		want       string
	}{
		{"AVRO", order1, map[string]any{"id": 7}, `{"id":7}`},
		{"JSON", order1, map[string]any{"id": 7}, `{"id":7}`},
		{"PROTOBUF_NATIVE", native, "2.500s", `"2.500s"`},
	} {
		topic := c.Topic("typed-" + k.kind)
		version := must[int64](t)(topic.SetSchema(ctx, client.TopicSchema{Type: k.kind, Text: k.text}))
		codec := schemas.NewTopicCodec(topic)
		produceOne(t, topic, codec, k.value)
		for received, err := range topic.Read(ctx, client.Earliest) {
			if err != nil {
				t.Fatal(err)
			}
			if received.SchemaVersion == nil || *received.SchemaVersion != version {
				t.Errorf("%s: schema version: got %v, want %d", k.kind, received.SchemaVersion, version)
			}
			if got := must[[]byte](t)(codec.DecodeJSON(ctx, *received.SchemaVersion, received.Value)); string(
				got) != k.want {
				t.Errorf("%s: got %s, want %s", k.kind, got, k.want)
			}
		}
		if _, _, err := codec.EncodeJSON(ctx, []byte(`{"id": `)); err == nil {
			t.Errorf("%s: invalid JSON was encoded, want an error", k.kind)
		}
	}

	topic, r := c.Topic("typed-registry"), schemas.New(c)
	if err := topic.Create(ctx, client.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	must[int](t)(r.Register(ctx, "typed-registry-value", schemas.Schema{Text: order1}))
	codec := schemas.NewCodec(r)
	produceOne(t, topic, codec.ForSubject("typed-registry-value"), map[string]any{"id": 8})
	for received, err := range topic.Read(ctx, client.Earliest) {
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := codec.DecodeJSON(ctx, received.Value); err != nil || string(got) != `{"id":8}` {
			t.Errorf("with a schema of the registry: got %s, %v", got, err)
		}
	}
}

func produceOne(t *testing.T, topic *client.Topic, encoder client.Encoder, value any) {
	t.Helper()
	p := topic.NewProducer(client.ProducerOptions{Encoder: encoder})
	if err := p.SendValue(t.Context(), value, client.Message{Key: "k"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := p.SendValue(t.Context(), make(chan int), client.Message{}, nil); err == nil {
		t.Error("a value that the schema cannot encode was sent")
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
