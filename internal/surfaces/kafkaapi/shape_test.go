package kafkaapi

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/test/tally"
)

// scatter sets every field to a random valid value.
func scatter(r *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "Version" && name != "UnknownTags" {
				scatter(r, v.Field(i))
			}
		}
	case reflect.String:
		v.SetString([]string{"", "a", "orders"}[r.IntN(3)])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Pointer:
		if r.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			scatter(r, v.Elem())
		}
	case reflect.Slice:
		n := r.IntN(4)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			scatter(r, v.Index(i))
		}
	case reflect.Array:
		scatter(r, v.Index(0))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		v.SetUint(uint64(r.IntN(100)))
	case reflect.Float64:
		v.SetFloat(r.Float64())
	default:
		v.SetInt(r.Int64N(100) - 1)
	}
}

// decode decodes a body as a connection does.
func decode(request kmsg.Request, body []byte) error {
	body, _, err := measureBody(request, body)
	if err != nil {
		return err
	}
	return decodeBody(request, body)
}

// TestCheckBodyAcceptsEveryRequest checks for every API and version that checkBody accepts what the codec
// encodes, and rejects it with one byte more or less.
func TestCheckBodyAcceptsEveryRequest(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for key, api := range allAPIs() {
		for version := api.min; version <= api.max; version++ {
			for range 50 {
				request := kmsg.RequestForKey(key)
				request.SetVersion(version)
				scatter(r, reflect.ValueOf(request).Elem())
				if fetch, ok := request.(*kmsg.FetchRequest); ok { // fields that only brokers send
					fetch.ClusterID, fetch.ReplicaState = nil, kmsg.NewFetchRequestReplicaState()
				}
				body := request.AppendTo(nil)
				again := kmsg.RequestForKey(key)
				again.SetVersion(version)
				if err := decode(again, body); err != nil {
					t.Fatalf("%s version %d: got %v for %+v, want it decoded", api.name, version, err, request)
				}
				if len(body) == 0 {
					continue
				}
				if err := decode(again, append(body, 0)); !errors.Is(err, errTrailingBytes) {
					t.Fatalf("%s version %d with a byte more: got %v, want %v", api.name, version, err,
						errTrailingBytes)
				}
				if err := decode(again, body[:len(body)-1]); err == nil {
					t.Fatalf("%s version %d with a byte less: got no error for %+v", api.name, version, request)
				}
			}
		}
	}
}

// TestAttackAnnouncements sends requests that announce more data than they contain. It checks that
// their cost in time and memory does not depend on the announced numbers.
func TestAttackAnnouncements(t *testing.T) {
	t.Parallel()
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0x0f}
	fetch := kmsg.NewPtrFetchRequest()
	fetch.Version = 17
	fetch.ReplicaState.ID, fetch.ReplicaState.Epoch = 5, 7
	inside := fetch.AppendTo(nil)
	inside = append(inside[:len(inside)-1], huge...) // the tagged fields of a tagged field
	inside[len(inside)-len(huge)-13-1] += byte(len(huge) - 1)
	list := append([]byte{0, 0, 0, 0, 0}, 0x80, 0x80, 0x80, 0x10) // 32 Mi elements
	for name, tc := range map[string]struct {
		key, version int16
		body         []byte
	}{
		"tags of a client that is not authenticated": {keyAPIVersions, 3, append([]byte{2, 'a', 2, '1'}, huge...)},
		"tags of credentials":                        {keySASLAuthenticate, 2, append([]byte{2, 'x'}, huge...)},
		"tags of a request":                          {3, 12, append([]byte{0, 0, 0}, huge...)},
		"tags inside a tagged field":                 {1, 17, inside},
		"an array without its elements":              {2, 8, list},
		"an array of the smallest elements":          {3, 1, append([]byte{0, 0x60, 0, 0}, make([]byte, 0x600000)...)},
		"an array of arrays": {
			2, 8,
			append([]byte{0, 0, 0, 0, 0, 0x80, 0x80, 0x80, 0x03}, make([]byte, 32<<20)...),
		},
	} {
		request := kmsg.RequestForKey(tc.key)
		request.SetVersion(tc.version)
		started := time.Now()
		successes := 0
		if err := decode(request, tc.body); err == nil {
			successes++
			t.Errorf("%s: got no error, want one", name)
		}
		if took := time.Since(started); took > time.Second {
			successes++
			t.Errorf("%s: took %v, want almost none", name, took)
		}
		tally.Attack(t, "stream request: "+name, 1, successes)
	}
}
