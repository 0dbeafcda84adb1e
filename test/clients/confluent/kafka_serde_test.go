package confluent_test

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde/avrov2"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde/jsonschema"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde/protobuf"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/test"
	"google.golang.org/protobuf/proto"
)

// overHTTP makes a request to the message API.
func overHTTP(t *testing.T, method, path, body string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, os.Getenv("FRESHET_SERVER")+path,
		strings.NewReader(body))
	do(t, err)
	request.Header.Set("Authorization", "Bearer "+os.Getenv("FRESHET_TOKEN"))
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	do(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode/100 != 2 {
		text, _ := io.ReadAll(response.Body)
		t.Fatalf("%s %s: %s: %s", method, path, response.Status, text)
	}
	return response
}

// TestKafkaSerializers sends values in each format through the registry and Kafka to a
// consumer group, and checks that an HTTP consumer receives the same bytes and can
// acknowledge them. The topic rejects values that have no schema of its subject.
func TestKafkaSerializers(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	value := order{ID: 7, Amount: 3, Note: "<&> €"}
	author := &test.Author{Name: "Kafka", Id: 123, Works: []string{"The Castle"}}
	avroTo, err := avrov2.NewSerializer(client, serde.ValueSerde, avrov2.NewSerializerConfig())
	do(t, err)
	avroFrom, err := avrov2.NewDeserializer(client, serde.ValueSerde, avrov2.NewDeserializerConfig())
	do(t, err)
	jsonTo, err := jsonschema.NewSerializer(client, serde.ValueSerde, jsonschema.NewSerializerConfig())
	do(t, err)
	jsonFrom, err := jsonschema.NewDeserializer(client, serde.ValueSerde, jsonschema.NewDeserializerConfig())
	do(t, err)
	protoTo, err := protobuf.NewSerializer(client, serde.ValueSerde, protobuf.NewSerializerConfig())
	do(t, err)
	protoFrom, err := protobuf.NewDeserializer(client, serde.ValueSerde, protobuf.NewDeserializerConfig())
	do(t, err)
	do(t, protoFrom.ProtoRegistry.RegisterMessage(author.ProtoReflect().Type()))
	for format, c := range map[string]struct {
		to    func(topic string) ([]byte, error)
		check func(topic string, data []byte) bool
	}{
		"avro": {
			func(topic string) ([]byte, error) { return avroTo.Serialize(topic, &value) },
			func(topic string, data []byte) bool {
				var got order
				return avroFrom.DeserializeInto(topic, data, &got) == nil && got == value
			},
		},
		"json": {
			func(topic string) ([]byte, error) { return jsonTo.Serialize(topic, &value) },
			func(topic string, data []byte) bool {
				var got order
				return jsonFrom.DeserializeInto(topic, data, &got) == nil && got == value
			},
		},
		"protobuf": {
			func(topic string) ([]byte, error) { return protoTo.Serialize(topic, author) },
			func(topic string, data []byte) bool {
				got, err := protoFrom.Deserialize(topic, data)
				m, ok := got.(proto.Message)
				return err == nil && ok && proto.Equal(m, author)
			},
		},
	} {
		t.Run(format, func(t *testing.T) {
			topic := newTopic(t, format, 1, map[string]string{"kop.stream.value.schema.validation": "true"})
			overHTTP(t, http.MethodPut, "/admin/v2/persistent/public/default/"+topic+"/subscription/web", `"earliest"`)
			data, err := c.to(topic)
			do(t, err)
			message := to(topic, 0, string(data))
			message.Key = []byte("customer-7")
			send(t, kafkaConfig(t, kafka.ConfigMap{"enable.idempotence": true, "compression.type": "zstd"}), message)

			consumer := newConsumer(t, topic, nil)
			do(t, consumer.SubscribeTopics([]string{topic}, nil))
			if m := receive(t, consumer); !c.check(topic, m.Value) {
				t.Errorf("consumer group: got %x, want the sent value", m.Value)
			}
			path := "/admin/rest/topics/v1/public/default/" + topic + "/web/message"
			response := overHTTP(t, http.MethodPost, path, "")
			body, err := io.ReadAll(response.Body)
			if err != nil || !c.check(topic, body) || response.Header.Get("X-Msg-Partition-Key") != "customer-7" ||
				response.Header.Get("X-Msg-Schema-Id") == "" {
				t.Errorf("over HTTP: got %x with %v, %v; want the sent value, its key and schema id", body,
					response.Header, err)
			}
			overHTTP(t, http.MethodPut, path, `"`+response.Header.Get("X-Msg-Message-Id")+`"`)
			stats, err := io.ReadAll(overHTTP(t, http.MethodGet,
				"/admin/v2/persistent/public/default/"+topic+"/partitioned-stats", "").Body)
			if err != nil || !strings.Contains(string(stats), `"msgBacklog":0`) {
				t.Errorf("after the acknowledgement: got %s, %v; want no backlog", stats, err)
			}
		})
	}
}
