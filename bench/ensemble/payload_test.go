package ensemble

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"

	"freshet/bench/payload"
)

const (
	// payloads is the number of different messages of a kind. It is large enough that no
	// message occurs twice in data that a server compresses together: every connection and
	// every producer has its own messages and batches.
	payloads = fewConnections * batchesPerConnection * batchSize
	// batchesPerConnection is the number of batches that a connection sends in rotation.
	batchesPerConnection = 3
	// messagesPerProducer is the number of messages that a Kafka producer sends in rotation. It is prime,
	// so that every message is sent to every topic before one is repeated.
	messagesPerProducer = 2399
)

// kind is a kind of message: its name and messages of about 1 KiB.
type kind struct {
	name    string
	texts   []string
	values  [][]byte // the same messages as bytes, for Kafka producers
	batches []string // bodies of batch produce requests
}

// newKind returns messages of a generator of package payload.
func newKind(name string, generate func(*rand.Rand) string) *kind {
	k := &kind{name: name, values: payload.Pool(payloads, generate)}
	for _, value := range k.values {
		k.texts = append(k.texts, string(value))
	}
	for at := 0; at < payloads; at += batchSize {
		var parts []string
		for _, text := range k.texts[at : at+batchSize] {
			parts = append(parts, `{"payload":"`+base64.StdEncoding.EncodeToString([]byte(text))+`"}`)
		}
		k.batches = append(k.batches, `{"messages":[`+strings.Join(parts, ",")+`]}`)
	}
	return k
}

// message returns the message that a connection sends in its nth call.
func (k *kind) message(connection, n int) string {
	return k.texts[(connection*(payloads/manyConnections)+n)%payloads]
}

// batch returns the request body that a connection sends in its nth batch call.
func (k *kind) batch(connection, n int) string {
	return k.batches[connection*batchesPerConnection+n%batchesPerConnection]
}

// record returns the nth record of a Kafka producer.
func (k *kind) record(producer, n int) []byte {
	return k.values[producer*messagesPerProducer+n%messagesPerProducer]
}

// events returns realistic messages with ids, timestamps, repeated names and text.
func events() *kind { return newKind("events", payload.Event) }

// random returns incompressible messages.
func random() *kind { return newKind("random", payload.Random) }
