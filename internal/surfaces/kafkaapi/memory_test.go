package kafkaapi_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/surfaces/kafkaapi"
	"freshet/test/tally"
)

// limitMemory limits a server's memory to a few requests.
func limitMemory(o *kafkaapi.Options) { o.Limits.MaxFrame, o.Limits.Memory = 3<<20, 4<<20 }

const largeTopics = 800

// large returns a request whose response is as large as the request.
func large() *kmsg.MetadataRequest {
	request := kmsg.NewPtrMetadataRequest()
	request.Version = 9
	for i := range largeTopics {
		name := fmt.Sprint(strings.Repeat("x", 900), i)
		request.Topics = append(request.Topics, kmsg.MetadataRequestTopic{Topic: &name})
	}
	return request
}

// TestAttackMemoryOfResponses queues large requests with large responses on many connections. It
// checks that responses do not wait for requests that wait for responses.
func TestAttackMemoryOfResponses(t *testing.T) {
	t.Parallel()
	w := newHarness(t, limitMemory)
	const connections, each = 8, 3
	done := make(chan error, connections)
	for range connections {
		r := w.wire(w.token)
		go func() {
			frame := kmsg.NewRequestFormatter().AppendRequest(nil, large(), 77)
			_ = r.conn.SetDeadline(time.Now().Add(8 * time.Second))
			go func() {
				for range each {
					_, _ = r.conn.Write(frame)
				}
			}()
			for range each {
				var size [4]byte
				if _, err := r.in.Read(size[:]); err != nil {
					done <- err
					return
				}
				if _, err := r.in.Discard(int(binary.BigEndian.Uint32(size[:]))); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	stuck := 0
	for range connections {
		if err := <-done; err != nil {
			stuck++
			t.Errorf("got %v, want a response to each request", err)
		}
	}
	tally.Attack(t, "stream: large responses to large requests", connections, stuck)
}

// TestAttackMemoryOfUnauthenticatedClients checks that unauthenticated clients that announce large requests take
// no memory from authenticated ones.
func TestAttackMemoryOfUnauthenticatedClients(t *testing.T) {
	t.Parallel()
	w := newHarness(t, limitMemory)
	const strangers = 60
	for range strangers {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", w.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, 512<<10),
			make([]byte, 8<<10)...)); err != nil {
			t.Fatal(err)
		}
	}
	successes := 0
	r := w.wire(w.token)
	for i := range 3 {
		if got := roundTrip[*kmsg.MetadataResponse](r, large()); len(got.Topics) != largeTopics {
			successes++
			t.Errorf("request %d: got %d topics, want a response", i, len(got.Topics))
		}
	}
	tally.Attack(t, "stream: memory taken by clients that have not authenticated", strangers, successes)
}

// TestAttackTagsOfUnauthenticatedClients checks that a request with thousands of tagged fields, which need more
// memory than bytes, ends the connection before it is decoded.
func TestAttackTagsOfUnauthenticatedClients(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	r := &rawClient{harness: w, token: w.token}
	successes := 0
	for _, tags := range []int{5, 100_000} {
		r.dial(w.address)
		request := kmsg.NewPtrApiVersionsRequest()
		request.Version, request.ClientSoftwareName, request.ClientSoftwareVersion = 3, "x", "1"
		for i := range tags {
			request.UnknownTags.Set(uint32(i), nil)
		}
		_, err := r.exchange(request, nil)
		if (err == nil) != (tags == 5) {
			successes++
			t.Errorf("%d tags: got %v, want an error for many tags", tags, err)
		}
		r.close()
	}
	tally.Attack(t, "stream: tagged fields before authentication", 1, successes)
}

// TestAttackMemoryOfWaiting checks that clients that wait for more data than exists do not keep
// others from reading.
func TestAttackMemoryOfWaiting(t *testing.T) {
	t.Parallel()
	w := newHarness(t, limitMemory)
	w.partitioned("orders", 2)
	for range 9 {
		w.send("orders", 0, strings.Repeat("x", 100_000))
	}
	const waiting = 6
	for range waiting {
		r := w.wire(w.token)
		request := fetchFrom(0, -1, map[string][]int64{"orders": {0, 0}})
		request.MinBytes, request.MaxWaitMillis = 1<<30, 60_000
		if _, err := r.conn.Write(kmsg.NewRequestFormatter().AppendRequest(nil, request, 1)); err != nil {
			t.Fatal(err)
		}
	}
	successes := 0
	for range 5 {
		reader := w.client(kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		if got := poll(t, reader, 9); len(got) != 9 {
			successes++
			t.Errorf("got %d records, want 9", len(got))
		}
		reader.Close()
	}
	tally.Attack(t, "stream: memory kept while waiting", waiting, successes)
}

// TestNamesInErrorsAreShort checks that an error does not repeat a long name.
func TestNamesInErrorsAreShort(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	r := w.wire(w.token)
	for _, name := range []string{strings.Repeat("x", 30_000), strings.Repeat("y/", 10_000)} {
		request := kmsg.NewPtrCreateTopicsRequest()
		request.Version = 5
		request.Topics = []kmsg.CreateTopicsRequestTopic{{Topic: name, NumPartitions: 1}}
		got := roundTrip[*kmsg.CreateTopicsResponse](r, request)
		if message := got.Topics[0].ErrorMessage; got.Topics[0].ErrorCode != 17 || message == nil ||
			len(*message) > 2000 {
			t.Errorf("%s…: got code %d with %d bytes of text, want 17 and a short text", name[:10],
				got.Topics[0].ErrorCode, len(fmt.Sprint(message)))
		}
	}
}
