package messageapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp/brokertest"
)

// bounded is the OpenAPI schema of one field of a request.
type bounded struct {
	name   string
	schema *openapi3.Schema
}

// boundsOfRequests collects every limit of message calls in the OpenAPI document: of
// query parameters, headers and fields of bodies.
func boundsOfRequests(t *testing.T) map[string]*openapi3.Schema {
	t.Helper()
	found := map[string]*openapi3.Schema{}
	add := func(b bounded) {
		if s := b.schema; s.Min != nil || s.Max != nil || s.MaxItems != nil || s.MaxLength != nil {
			found[b.name] = s
		}
	}
	doc := brokertest.Document(t)
	for path, item := range doc.Paths.Map() {
		if !strings.HasPrefix(path, root) {
			continue
		}
		for _, op := range item.Operations() {
			for _, p := range op.Parameters {
				add(bounded{p.Value.Name, p.Value.Schema.Value})
			}
		}
	}
	for _, body := range []string{"Settle", "ConsumeOptions", "ConsumeBatchOptions", "BatchProduce", "BatchMessage"} {
		for name, field := range doc.Components.Schemas[body].Value.Properties {
			add(bounded{body + "." + name, field.Value})
		}
	}
	return found
}

// TestLimitsMatchTheDocument tries every limit of the OpenAPI document, and one
// value beyond it.
func TestLimitsMatchTheDocument(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	first := w.Call("POST", topic+"/message", "x").WantStatus(201).MessageID()
	post := func(path, format string) func(int64) int {
		return func(n int64) int { return w.Call("POST", topic+path, fmt.Sprintf(format, n)).Status }
	}
	header := func(path, name string) func(int64) int {
		return func(n int64) int { return w.Call("POST", topic+path, "x", name, fmt.Sprint(n)).Status }
	}
	leaseProbe := func(call, field string) func(int64) int {
		return func(n int64) int {
			w.Call("POST", topic+"/message", "x").WantStatus(201)
			id := w.Call("POST", topic+"/s/message", "").WantStatus(200).MessageID()
			return w.Call("POST", topic+"/s/message/"+call, fmt.Sprintf(`{"messageId":%q,%q:%d}`, id, field, n)).Status
		}
	}
	stream := func(parameter string) func(n int64) int {
		return func(n int64) int { return w.openStream(fmt.Sprintf("%s/s/messages?%s=%d", topic, parameter, n)) }
	}
	search := func(parameter string) func(n int64) int {
		return func(n int64) int {
			return w.openStream(fmt.Sprintf("%s/search?filter=true&%s=%d", topic, parameter, n))
		}
	}
	probes := map[string]func(int64) int{
		"credits":                   stream("credits"),
		"ackTimeoutMillis":          stream("ackTimeoutMillis"),
		"X-Max-Unacked":             nil, // the same as credits: TestInvalidCredits
		"X-Msg-Long-Schema-Version": nil, // depends on the versions of the topic: TestProduceHeaders
		"X-Msg-Sequence-Id":         header("/message", "X-Msg-Sequence-Id"),
		"X-Msg-Event-Time":          header("/message", "X-Msg-Event-Time"),
		"X-Msg-Deliver-At":          header("/message", "X-Msg-Deliver-At"),
		"X-Msg-Deliver-After-Ms":    header("/message", "X-Msg-Deliver-After-Ms"),
		"payloadLimit":              nil, // of a stream: TestInvalidEventRequests
		"since":                     nil, // of a stream: TestInvalidEventRequests
		"last": func(n int64) int {
			return w.openStream(fmt.Sprintf("%s/tail?last=%d", topic, n))
		},
		"from":          search("from"),
		"to":            search("to"),
		"limit":         search("limit"),
		"timeoutMillis": search("timeoutMillis"),
		"filter": func(n int64) int {
			return w.openStream(topic + "/search?filter=true" + strings.Repeat("%20", int(n)-len("true")))
		},
		"Idempotency-Key": func(n int64) int {
			return w.Call("POST", topic+"/message", "x", "Idempotency-Key", strings.Repeat("k", int(n))).Status
		},
		"Settle.messageIds": func(n int64) int {
			return w.Call("PUT", topic+"/s/messages", ids(first, n)).Status
		},
		"Settle.delayMillis":                   leaseProbe("nack", "delayMillis"),
		"Settle.ackTimeoutMillis":              leaseProbe("extend", "ackTimeoutMillis"),
		"ConsumeOptions.timeoutMillis":         post("/s/message", `{"timeoutMillis":%d}`),
		"ConsumeOptions.ackTimeoutMillis":      post("/s/message", `{"timeoutMillis":0,"ackTimeoutMillis":%d}`),
		"ConsumeBatchOptions.maxMessages":      post("/s/messages", `{"timeoutMillis":0,"maxMessages":%d}`),
		"ConsumeBatchOptions.timeoutMillis":    post("/s/messages", `{"timeoutMillis":%d}`),
		"ConsumeBatchOptions.ackTimeoutMillis": post("/s/messages", `{"timeoutMillis":0,"ackTimeoutMillis":%d}`),
		"BatchProduce.messages": func(n int64) int {
			return w.Call("POST", topic+"/messages", `{"messages":[`+
				strings.TrimSuffix(strings.Repeat(`{},`, int(n)), ",")+`]}`).Status
		},
		"BatchMessage.eventTime":          post("/messages", `{"messages":[{"eventTime":%d}]}`),
		"BatchMessage.deliverAt":          post("/messages", `{"messages":[{"deliverAt":%d}]}`),
		"BatchMessage.sequenceId":         post("/messages", `{"messages":[{"sequenceId":%d}]}`),
		"BatchMessage.schemaVersion":      nil, // depends on the versions of the topic
		"BatchMessage.deliverAfterMillis": post("/messages", `{"messages":[{"deliverAfterMillis":%d}]}`),
		"BatchMessage.idempotencyKey": func(n int64) int {
			return w.Call("POST", topic+"/messages", `{"messages":[{"idempotencyKey":"`+strings.Repeat("k", int(n))+
				`"}]}`).Status
		},
	}
	for name, schema := range boundsOfRequests(t) {
		probe, known := probes[name]
		if !known {
			t.Errorf("limits of %s are not tested; add a probe", name)
		}
		if probe == nil {
			continue
		}
		try := func(value int64, within bool) {
			if status := probe(value); (status < 400 && status != http.StatusMultiStatus) != within {
				t.Errorf("%s of %d: got status %d, want success: %v", name, value, status, within)
			}
		}
		if schema.Min != nil {
			try(int64(*schema.Min), true)
			try(int64(*schema.Min)-1, false)
		}
		for _, most := range []*int64{whole(schema.Max), unsigned(schema.MaxItems), unsigned(schema.MaxLength)} {
			if most != nil {
				try(*most, true)
				try(*most+1, false)
			}
		}
	}
}

// openStream opens a stream, closes it and returns its status.
func (w *harness) openStream(path string) int {
	req, err := http.NewRequestWithContext(w.T.Context(), http.MethodGet, w.Server.URL+path, http.NoBody)
	if err != nil {
		w.T.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.Token)
	res, err := w.Server.Client().Do(req)
	if err != nil {
		w.T.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// ids returns a body that has one id n times.
func ids(id string, n int64) string {
	return `{"messageIds":[` + strings.TrimSuffix(strings.Repeat(`"`+id+`",`, int(n)), ",") + `]}`
}

func whole(f *float64) *int64 {
	if f == nil {
		return nil
	}
	return new(int64(*f))
}

func unsigned(n *uint64) *int64 {
	if n == nil {
		return nil
	}
	return new(int64(*n))
}
