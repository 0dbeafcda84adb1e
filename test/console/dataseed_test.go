package console

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Paths of the cluster "orders" of acme.
const (
	ordersRoot = "/clusters/acme/orders"
	admin      = ordersRoot + "/admin/v2/persistent/"
	messages   = ordersRoot + "/admin/rest/topics/v1/"
	registry   = ordersRoot + "/stream"
)

const orderAvro = `{"type":"record","name":"Order","namespace":"shop","fields":[` +
	`{"name":"id","type":"string"},{"name":"amount","type":"double"},` +
	`{"name":"items","type":{"type":"array","items":"string"}},` +
	`{"name":"note","type":["null","string"],"default":null}]}`

// avroOrder encodes an order with orderAvro.
func avroOrder(id string, amount float64, items ...string) []byte {
	text := func(b []byte, s string) []byte { return append(binary.AppendVarint(b, int64(len(s))), s...) }
	b := text(nil, id)
	b, _ = binary.Append(b, binary.LittleEndian, amount)
	if len(items) > 0 {
		b = binary.AppendVarint(b, int64(len(items)))
		for _, item := range items {
			b = text(b, item)
		}
	}
	return append(b, 0, 0) // end of the items; null for note
}

// send calls the server and returns an error unless the status is below 300.
func send(ctx context.Context, method, path string, body any, headers ...string) ([]byte, error) {
	status, text, err := call(ctx, server.Token, method, path, body, headers...)
	if err == nil && status >= 300 {
		err = fmt.Errorf("%s %s: %d %s", method, path, status, text)
	}
	return text, err
}

// seedData fills the cluster orders with topics, messages, subscriptions and schemas.
func seedData(ctx context.Context) error {
	ready := time.Now().Add(30 * time.Second)
	for {
		_, err := send(ctx, http.MethodGet, ordersRoot+"/admin/v2/tenants", nil)
		if err == nil {
			break
		}
		if time.Now().After(ready) {
			return err
		}
		<-time.After(100 * time.Millisecond)
	}
	var first error
	do := func(method, path string, body any, headers ...string) {
		if first == nil {
			_, first = send(ctx, method, path, body, headers...)
		}
	}
	do("PUT", ordersRoot+"/admin/v2/tenants/eu",
		object{"adminRoles": []string{}, "allowedClusters": []string{"orders"}})
	do("PUT", ordersRoot+"/admin/v2/namespaces/eu/shop", nil)
	do("PUT", ordersRoot+"/admin/v2/namespaces/public/archive", nil)
	for _, name := range []string{
		"public/default/orders", "public/default/invoices", "public/default/clicks",
		"public/default/emails", "public/archive/orders-2025", "eu/shop/returns",
	} {
		do("PUT", admin+name, nil)
	}
	do("PUT", admin+"public/default/payments/partitions", 4)
	do("POST", ordersRoot+"/admin/v2/schemas/public/default/orders/schema",
		object{"type": "AVRO", "schema": orderAvro, "properties": object{}})
	for _, s := range []struct{ path, body string }{
		{"public/default/orders/subscription/billing", `earliest`},
		{"public/default/orders/subscription/search-index", `latest`},
		{"public/default/payments/subscription/ledger", `earliest`},
	} {
		do("PUT", admin+s.path, s.body)
	}
	do("PUT", admin+"public/default/orders/subscription/shipping",
		object{"position": "earliest", "deadLetterPolicy": object{"maxRedeliverCount": 4}})
	do("PUT", admin+"public/default/orders/properties", object{"owner": "team-checkout", "cost-center": "4711"})
	do("POST", admin+"public/default/orders/permissions/checkout@acme", []string{"produce"})
	for i := range 24 {
		order := avroOrder(fmt.Sprintf("A-%04d", 1000+i), 12.5*float64(i+1),
			[]string{"coffee", "filter", "mug"}[:1+i%3]...)
		do("POST", messages+"public/default/orders/message", order, "X-Msg-Partition-Key",
			fmt.Sprintf("customer-%d", i%7), "X-Msg-Property-region", []string{"eu", "us"}[i%2])
		do("POST", messages+"public/default/payments/message",
			[]byte(fmt.Sprintf(`{"order":"A-%04d","paid":true,"method":"card"}`, 1000+i)), "X-Msg-Partition-Key",
			fmt.Sprint(i))
	}
	do("POST", messages+"public/default/clicks/message", []byte(`{"text":"`+strings.Repeat("long ", 40000)+`"}`))
	do("POST", messages+"public/default/clicks/message", []byte("GET /checkout?step=2"))
	register := func(subject, schema string, more object) {
		body := object{"schema": schema}
		for k, v := range more {
			body[k] = v
		}
		do("POST", registry+"/subjects/"+subject+"/versions", body)
	}
	register("address", `{"type":"record","name":"Address","namespace":"shop","fields":[`+
		`{"name":"street","type":"string"},{"name":"city","type":"string"}]}`, nil)
	register("invoices-value",
		`{"type":"record","name":"Invoice","namespace":"shop","fields":[{"name":"id","type":"string"},`+
			`{"name":"total","type":"int"},{"name":"due","type":"string"}]}`, nil)
	register("invoices-value",
		`{"type":"record","name":"Invoice","namespace":"shop","fields":[{"name":"id","type":"string"},`+
			`{"name":"total","type":"long"},{"name":"due","type":"string"},`+
			`{"name":"currency","type":"string","default":"EUR"}]}`, nil)
	do("PUT", registry+"/config/invoices-value", object{"compatibility": "NONE"})
	register("invoices-value",
		`{"type":"record","name":"Invoice","namespace":"shop","fields":[{"name":"id","type":"string"},`+
			`{"name":"total","type":"string"},{"name":"currency","type":"string","default":"EUR"},`+
			`{"name":"customer","type":"string"},{"name":"to","type":"shop.Address"}]}`,
		object{"references": []object{{"name": "shop.Address", "subject": "address", "version": 1}}})
	do("PUT", registry+"/config/invoices-value", object{"compatibility": "FULL"})
	register("clicks-value", `{"type":"object","properties":{"text":{"type":"string"}}}`, object{"schemaType": "JSON"})
	register("emails-value", "syntax = \"proto3\";\nmessage Email { string to = 1; repeated string tags = 2; "+
		"map<string, int32> counts = 3; Kind kind = 4; }\nenum Kind { PLAIN = 0; HTML = 1; }",
		object{"schemaType": "PROTOBUF"})
	register("legacy-value", `"string"`, nil)
	do("DELETE", registry+"/subjects/legacy-value", nil)
	do("POST", messages+"public/default/emails/message",
		append([]byte{0, 0, 0, 0, 6, 0}, "\x0a\x05a@b.c\x12\x01x\x12\x01y\x1a\x05\x0a\x01n\x10\x07\x20\x01"...))
	do("PUT", ordersRoot+"/rest-stream/admin/v1/groups/reporting/offsets",
		object{"offsets": []object{
			{"topic_name": "payments", "position": "earliest"},
			{"topic_name": "orders", "position": "earliest"},
		}})
	do("PUT", ordersRoot+"/rest-stream/admin/v1/groups/fraud-check/offsets",
		object{"offsets": []object{{"topic_name": "payments", "position": "latest"}}})
	return first
}
