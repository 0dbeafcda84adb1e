package ensemble

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
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

// newKind generates the messages; the fixed seed makes them the same in every run.
func newKind(name string, make func(*rand.Rand) string) *kind {
	k := &kind{name: name}
	r := rand.New(rand.NewPCG(1, 2))
	for range payloads {
		text := make(r)
		k.texts, k.values = append(k.texts, text), append(k.values, []byte(text))
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
func events() *kind { return newKind("events", event) }

// random returns incompressible messages, as sent by clients that encrypt or compress
// their payloads.
func random() *kind {
	return newKind("random", func(r *rand.Rand) string {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return string(b)
	})
}

var (
	actions = []string{
		"order.created", "order.paid", "order.cancelled", "order.shipped", "cart.updated",
		"customer.changed",
	}
	cities = []string{"Berlin", "Lisbon", "Montréal", "Nairobi", "Osaka", "Porto Alegre", "Tallinn", "Wellington"}
	words  = strings.Fields(`please leave the parcel with a neighbour when nobody answers the door thank you
		ring twice gift wrap for my sister birthday on Friday invoice to the office not before noon
		second floor left the lift is broken call me on arrival fragile glass inside keep upright
		replacement for a damaged item of last week express delivery if possible same colour as before`)
)

// event returns an order event of a shop.
func event(r *rand.Rand) string {
	at := time.UnixMilli(1_760_000_000_000 + r.Int64N(86_400_000)).UTC().Format(time.RFC3339Nano)
	var lines []string
	for n := range 3 {
		lines = append(lines,
			fmt.Sprintf(`{"position":%d,"sku":"SKU-%06d","name":"%s %s","quantity":%d,`+
				`"unitPrice":{"amount":"%d.%02d","currency":"EUR"}}`,
				n+1, r.IntN(1e6), pick(r, words), pick(r, words), 1+r.IntN(5), r.IntN(200), r.IntN(100)))
	}
	var note []string
	for range 12 + r.IntN(16) {
		note = append(note, pick(r, words))
	}
	return fmt.Sprintf(`{"id":"%08x-%04x-4%03x-a%03x-%012x","type":"%s","source":"/shop/checkout",`+
		`"specversion":"1.0","time":"%s","traceparent":"00-%016x%016x-%016x-01",`+
		`"data":{"orderId":"ORD-%08d","customer":{"id":"CUS-%06d","email":"user%d@example.com",`+
		`"city":"%s","country":"%s","newsletter":%t},"lines":[%s],`+
		`"shipping":{"method":"standard","carrier":"parcel-service","warehouse":"eu-central-2","estimatedDays":%d},`+
		`"channel":"web","total":{"amount":"%d.%02d","currency":"EUR"},"note":"%s"}}`,
		r.Uint32(), r.IntN(1<<16), r.IntN(1<<12), r.IntN(1<<12), r.Int64N(1<<48), pick(r, actions), at,
		r.Uint64(), r.Uint64(), r.Uint64(), r.IntN(1e8), r.IntN(1e6), r.IntN(1e6), pick(r, cities),
		pick(r, []string{"DE", "PT", "CA", "KE", "JP", "BR", "EE", "NZ"}), r.IntN(2) == 0,
		strings.Join(lines, ","), 1+r.IntN(9), r.IntN(900), r.IntN(100), strings.Join(note, " "))
}

func pick(r *rand.Rand, of []string) string { return of[r.IntN(len(of))] }

// TestPayloads checks the properties that the rows rely on: message size, compression
// ratio of batches of 100, and that all messages differ.
func TestPayloads(t *testing.T) {
	for _, c := range []struct {
		*kind
		least, most float64
	}{{events(), 3, 5}, {random(), 0.99, 1}} {
		bytes, packed, seen := 0, 0, map[string]bool{}
		for at := 0; at < payloads; at += batchSize {
			text := strings.Join(c.texts[at:at+batchSize], "")
			bytes += len(text)
			packed += len(s2.Encode(nil, []byte(text)))
		}
		for _, text := range c.texts {
			seen[text] = true
		}
		mean, ratio := float64(bytes)/payloads, float64(bytes)/float64(packed)
		t.Logf("%s: %.0f bytes, %.2f times smaller", c.name, mean, ratio)
		if mean < 0.95*size || mean > 1.05*size {
			t.Errorf("%s: got %.0f bytes, want about %d", c.name, mean, size)
		}
		if ratio < c.least || ratio > c.most {
			t.Errorf("%s: got %.2f times smaller, want %.2f to %.2f", c.name, ratio, c.least, c.most)
		}
		if len(seen) != payloads {
			t.Errorf("%s: got %d different messages, want %d", c.name, len(seen), payloads)
		}
	}
}
