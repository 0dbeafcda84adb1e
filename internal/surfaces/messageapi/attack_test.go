package messageapi_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"freshet/internal/broker/messaging"
	"freshet/internal/broker/records"
	"freshet/test/tally"
)

// TestAttackHeaders: a Kafka client cannot inject HTTP headers into the responses of
// HTTP consumers or of the admin interface with the keys and headers of its records.
func TestAttackHeaders(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	random := rand.New(rand.NewPCG(1, 2))
	alphabet := []string{
		"\r\n", "\n", "\r", "\x00", ": ", "X-Evil: 1", "X-Evil", "Set-Cookie: a=b", "Content-Length",
		"Transfer-Encoding: chunked", "a", " ", "\t", "é", "\xff", "\u2028", "\x7f", "HTTP/1.1 200 OK",
	}
	bytes := func() []byte {
		var b strings.Builder
		for range random.IntN(6) {
			b.WriteString(alphabet[random.IntN(len(alphabet))])
		}
		return []byte(b.String())
	}
	const attempts = 300
	var list []record
	for range attempts {
		r := record{key: bytes(), value: []byte("payload")}
		for range random.IntN(4) {
			r.headers = append(r.headers, records.Header{Key: bytes(), Value: bytes()})
		}
		list = append(list, r)
	}
	w.write("t", list...)
	succeeded := 0
	for range attempts {
		peeked := w.Call("GET", "/admin/v2/persistent/public/default/t/subscription/s/position/1", "").WantStatus(200)
		got := w.Call("POST", topic+"/s/message", "").WantStatus(200)
		for prefix, r := range map[string]struct {
			header map[string][]string
			body   string
		}{"X-Msg-": {got.Header, got.Body}, "X-Pulsar-": {peeked.Header, peeked.Body}} {
			evil := r.body != "payload"
			for name, values := range r.header {
				switch {
				case strings.HasPrefix(name, prefix):
				case name == "Content-Type", name == "Content-Length", name == "Date", name == "X-Request-Id",
					name == "X-Content-Type-Options":
				default:
					evil = true
				}
				for _, v := range values {
					evil = evil || strings.ContainsAny(v, "\r\n\x00")
				}
			}
			if evil {
				succeeded++
				t.Errorf("got headers %q and body %q, want only those of a message", r.header, r.body)
			}
		}
		w.Call("PUT", topic+"/s/message", got.MessageID()).WantStatus(204)
	}
	tally.Attack(t, "records whose keys and headers forge HTTP headers", 2*attempts, succeeded)
}
