package kafkaapi_test

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/test/tally"
)

// rawClient is a raw connection without a client library.
type rawClient struct {
	*harness
	token string
	conn  net.Conn
	in    *bufio.Reader
	next  int32

	responses   map[int16]int // requests with a response, by key
	maxResponse int32         // maximum size of a response; maxResponseBytes when 0
}

// dial connects.
func (r *rawClient) dial(address string) {
	r.Helper()
	conn, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", address)
	if err != nil {
		r.Fatal(err)
	}
	r.conn, r.in = conn, bufio.NewReader(conn)
	r.Cleanup(func() { _ = conn.Close() })
}

// open connects and authenticates.
func (r *rawClient) open() {
	r.Helper()
	r.dial(r.address)
	r.login()
}

// login authenticates with the token.
func (r *rawClient) login() {
	r.Helper()
	r.in = bufio.NewReader(r.conn)
	handshake := kmsg.NewPtrSASLHandshakeRequest()
	handshake.Version, handshake.Mechanism = 1, "PLAIN"
	authenticate := kmsg.NewPtrSASLAuthenticateRequest()
	authenticate.Version, authenticate.SASLAuthBytes = 2, []byte("\x00user\x00"+r.token)
	for _, request := range []kmsg.Request{handshake, authenticate} {
		if _, err := r.exchange(request, nil); err != nil {
			r.Fatalf("authenticating: %v", err)
		}
	}
}

func (r *rawClient) close() { _ = r.conn.Close() }

// maxResponseBytes is far above the responses to the requests of this test.
const maxResponseBytes = 8 << 20

// exchange sends a request, after damage has changed it, and reads the response.
func (r *rawClient) exchange(request kmsg.Request, damage func([]byte)) (kmsg.Response, error) {
	r.next++
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("robust")).AppendRequest(nil, request, r.next)
	if damage != nil {
		damage(frame[14:]) // after size, key, version, correlation id and the length of the client id
	}
	_ = r.conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := r.conn.Write(frame); err != nil {
		return nil, err
	}
	if p, ok := request.(*kmsg.ProduceRequest); ok && p.Acks == 0 {
		return nil, nil
	}
	var head [8]byte
	if _, err := io.ReadFull(r.in, head[:]); err != nil {
		return nil, err
	}
	size := int32(binary.BigEndian.Uint32(head[:4]))
	most := cmp.Or(r.maxResponse, maxResponseBytes)
	if size < 4 || size > most {
		r.Fatalf("key %d version %d: got a response of %d bytes, want at most %d", request.Key(),
			request.GetVersion(), size, most)
	}
	body := make([]byte, size-4)
	if _, err := io.ReadFull(r.in, body); err != nil {
		return nil, err
	}
	if got := int32(binary.BigEndian.Uint32(head[4:])); got != r.next {
		r.Fatalf("key %d version %d: got correlation id %d, want %d", request.Key(),
			request.GetVersion(), got, r.next)
	}
	response := request.ResponseKind()
	response.SetVersion(request.GetVersion())
	if response.IsFlexible() && request.Key() != 18 {
		body = body[1:]
	}
	if err := response.ReadFrom(body); err != nil {
		r.Fatalf("key %d version %d: decoding the response: %v", request.Key(), request.GetVersion(), err)
	}
	return response, nil
}

// filler fills requests with random content.
type filler struct {
	*rand.Rand
	version int16
}

var madeUp = []string{
	"orders", "orders", "unknown", "", "public.default.orders", "public/default/orders",
	"persistent://public/default/orders", "a.b.c.d", "..", "orders-partition-0",
	"g", "team", "consumer", "range", "PLAIN", "retention.ms", "cleanup.policy", "1", "-1", "compact", "\x00\xff",
	strings.Repeat("x", 300), "1000",
}

var numbers = []int64{
	0, 0, 0, 1, 1, -1, 2, 3, -2, 4, 5, 8, 127, math.MaxInt16, math.MaxInt32, math.MinInt32,
	math.MaxInt64, math.MinInt64, 1 << 40,
}

func pick[T any](f *filler, from []T) T { return from[f.IntN(len(from))] }

// fill sets every field to a valid or invalid value.
func (f *filler) fill(v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.Name != "Version" && field.Name != "UnknownTags" {
				f.fill(v.Field(i), field.Name)
			}
		}
	case reflect.String:
		v.SetString(pick(f, madeUp))
	case reflect.Bool:
		v.SetBool(f.IntN(2) == 0)
	case reflect.Pointer:
		if f.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), name)
		}
	case reflect.Slice:
		f.fillSlice(v, name)
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i), name)
		}
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(f.number(name))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		v.SetUint(uint64(f.Uint32()) & 0xff)
	case reflect.Float64:
		v.SetFloat(f.Float64())
	}
}

func (f *filler) fillSlice(v reflect.Value, name string) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		raw := make([]byte, f.IntN(80))
		for i := range raw {
			raw[i] = byte(f.Uint32())
		}
		v.SetBytes(raw)
		return
	}
	n := f.IntN(4)
	if n == 0 && f.IntN(2) == 0 {
		return // null, where allowed
	}
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		f.fill(v.Index(i), name)
	}
}

// number returns a random number; times are short, so that nothing waits long.
func (f *filler) number(name string) int64 {
	switch {
	case name == "SessionTimeoutMillis" && f.version > 0:
		return pick(f, []int64{6000, 6000, 0, -1, math.MaxInt32})
	case strings.Contains(name, "Millis"):
		return pick(f, []int64{0, 1, 20, -1, math.MinInt32})
	case name == "ResourceType":
		return pick(f, []int64{2, 2, 4, 8, 16, 32, 0, -1, 99})
	}
	return pick(f, numbers)
}

// TestRequestsOfEveryKind sends every advertised API in every version with random content, partly
// with changed bytes, as callers with all permissions and with none. It checks that each request
// gets a response in the form of its version or closes its connection, and that the server stays
// available.
func TestRequestsOfEveryKind(t *testing.T) {
	t.Parallel()
	rounds := 6
	if tally.Long() {
		rounds = 60
	}
	w := newHarness(t)
	for name, token := range map[string]string{"administrator": w.token, "nobody": w.account("nobody")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			f := &filler{Rand: rand.New(rand.NewPCG(seed, 0))}
			r := &rawClient{harness: &harness{T: t, address: w.address}, token: token, responses: make(map[int16]int)}
			r.open()
			defer func() { r.close() }()
			answer, err := r.exchange(kmsg.NewPtrApiVersionsRequest(), nil)
			if err != nil {
				t.Fatal(err)
			}
			advertised, _ := answer.(*kmsg.ApiVersionsResponse)
			if len(advertised.ApiKeys) < 30 {
				t.Fatalf("got %d APIs, want all", len(advertised.ApiKeys))
			}
			admin := kadm.NewClient(w.client())
			for _, api := range advertised.ApiKeys {
				_, _ = admin.CreateTopic(t.Context(), 3, 1, nil, "orders") // a random request may delete it
				for version := api.MinVersion; version <= api.MaxVersion; version++ {
					r.sendRandom(f, api.ApiKey, version, rounds)
				}
			}
			for _, api := range advertised.ApiKeys {
				// Half of the requests are valid; credentials never are.
				if api.ApiKey != 36 && r.responses[api.ApiKey] == 0 {
					t.Errorf("key %d: got no response, want some", api.ApiKey)
				}
			}
			if _, err := kadm.NewClient(w.client()).BrokerMetadata(t.Context()); err != nil {
				t.Errorf("after all requests: got %v, want a response", err)
			}
		})
	}
}

// waits are the APIs whose response may take long, or never come, when their numbers change:
// Produce, Fetch, JoinGroup, SyncGroup.
var waits = map[int16]bool{0: true, 1: true, 11: true, 14: true}

// sendRandom sends random requests of one kind.
func (r *rawClient) sendRandom(f *filler, key, version int16, rounds int) {
	r.Helper()
	if key == 17 || key == 36 {
		rounds = min(rounds, 2) // responses to wrong credentials are delayed
	}
	f.version = version
	for round := range rounds {
		request := kmsg.RequestForKey(key)
		request.SetVersion(version)
		f.fill(reflect.ValueOf(request).Elem(), "")
		var damage func([]byte)
		if round%3 == 2 && !waits[key] {
			damage = func(b []byte) {
				for range 1 + f.IntN(3) {
					b[f.IntN(len(b))] ^= byte(1 << f.IntN(8))
				}
			}
		}
		_, err := r.exchange(request, damage)
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			r.Fatalf("key %d version %d: no response to %s", key, version, fmt.Sprintf("%+v", request))
		}
		if err == nil {
			r.responses[key]++
		}
		if err != nil || key == 17 {
			r.close()
			r.open()
		}
	}
}
