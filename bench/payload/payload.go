// Package payload generates the messages that the benchmarks send. No two messages of a
// generator are equal, so that a server which compresses data does not find the same
// message again and again.
package payload

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Size is the size of the messages that Random returns, and about the size of an Event.
const Size = 1024

// Random returns an incompressible message, as sent by clients that encrypt or compress
// their payloads.
func Random(r *rand.Rand) string {
	b := make([]byte, Size)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return string(b)
}

// Reading returns the reading of a sensor, about 100 bytes of JSON.
func Reading(r *rand.Rand) string {
	return fmt.Sprintf(`{"sensor":"SEN-%06d","site":"%s","at":%d,"celsius":%d.%02d,"id":"%012x"}`,
		r.IntN(1e6), pick(r, cities), 1_760_000_000_000+r.Int64N(86_400_000), r.IntN(40), r.IntN(100), r.Int64N(1<<48))
}

// Pool returns n messages of a generator. A fixed seed makes them the same in every run.
func Pool(n int, generate func(*rand.Rand) string) [][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	all := make([][]byte, n)
	for i := range all {
		all[i] = []byte(generate(r))
	}
	return all
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

// Event returns an order event of a shop, about 1 KiB of JSON.
func Event(r *rand.Rand) string {
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
