package kafkaapi

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// FuzzRequest checks that any body is decoded or rejected within the memory limit, and that a
// decoded request can be encoded and decoded again.
func FuzzRequest(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	apis := allAPIs()
	for key, api := range apis {
		for _, version := range []int16{api.minSupported, (api.minSupported + api.max) / 2, api.max} {
			request := kmsg.RequestForKey(key)
			request.SetVersion(version)
			scatter(r, reflect.ValueOf(request).Elem())
			if fetch, ok := request.(*kmsg.FetchRequest); ok {
				fetch.ClusterID, fetch.ReplicaState = nil, kmsg.NewFetchRequestReplicaState()
			}
			f.Add(key, version, request.AppendTo(nil))
		}
	}
	f.Fuzz(func(t *testing.T, key, version int16, body []byte) {
		api, ok := apis[key]
		if !ok || version < api.minSupported || version > api.max {
			return
		}
		request := kmsg.RequestForKey(key)
		request.SetVersion(version)
		memory, err := checkBody(shapeOf(key, version), body)
		if err != nil {
			return
		}
		if memory > maxDecodedBytes || memory > len(body)*1024 {
			t.Errorf("%s version %d: %d bytes need %d bytes of memory", api.name, version, len(body), memory)
		}
		if err := decodeBody(request, body); err != nil {
			return
		}
		again := kmsg.RequestForKey(key)
		again.SetVersion(version)
		if err := decode(again, request.AppendTo(nil)); err != nil {
			t.Errorf("%s version %d: decoding the encoded request again: %v", api.name, version, err)
		}
	})
}

// FuzzHeader checks that decoding a header never returns more data than the frame contains.
func FuzzHeader(f *testing.F) {
	request := kmsg.NewPtrMetadataRequest()
	request.Version = 12
	f.Add(kmsg.NewRequestFormatter(kmsg.FormatterClientID("client")).AppendRequest(nil, request, 7)[4:])
	f.Add([]byte{0, 18, 0, 3, 0, 0, 0, 1, 0xff, 0xff, 1, 5, 2, 'a', 'b'})
	f.Add([]byte{0, 18, 0, 3, 0, 0, 0, 1, 0x7f, 0xff})
	f.Fuzz(func(t *testing.T, frame []byte) {
		h, body, err := readHeader(frame)
		if err != nil {
			return
		}
		if len(h.client) > maxClientID || len(body)+10 > len(frame) {
			t.Errorf("got a client id of %d bytes and a body of %d out of %d", len(h.client), len(body), len(frame))
		}
		if rest, err := skipTags(body); err == nil && len(rest) >= len(body) {
			t.Errorf("tags: got %d bytes left of %d, want fewer", len(rest), len(body))
		}
	})
}

// FuzzCredentials checks that malformed credentials are rejected with an error that does not
// contain them.
func FuzzCredentials(f *testing.F) {
	f.Add("\x00public/default\x00token:eyJh")
	f.Add("user\x00user\x00secret")
	f.Add("\x00sales/eu@acme/prod\x00token:x")
	f.Add("n,,\x01auth=Bearer abc\x01logicalCluster=acme/prod\x01namespace=sales/eu\x01\x01")
	f.Add("n,,\x01\x01")
	f.Fuzz(func(t *testing.T, data string) {
		for _, mechanism := range mechanisms {
			given, err := parseCredentials(mechanism, []byte(data))
			switch {
			case err == nil && given.token == "":
				t.Errorf("%s: got credentials without a token", mechanism)
			case err == nil && (given.organization == "") != (given.cluster == ""):
				t.Errorf("%s: got an incomplete cluster name: %+v", mechanism, given)
			case err != nil && len(data) > 40 && strings.Contains(err.Error(), data):
				t.Errorf("%s: error repeats the credentials: %v", mechanism, err)
			}
		}
	})
}
