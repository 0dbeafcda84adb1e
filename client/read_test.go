package client_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"freshet.dev/client"
)

func TestReadEnds(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	topic, _ := newTopic(t, t.Name(), 2, client.SubscriptionOptions{})
	var ids []string
	for i := range 4 { // all on one partition, because they have the same key
		ids = append(ids, must[client.Produced](t)(topic.Produce(ctx,
			client.Message{Value: fmt.Append(nil, i), Key: "k"})).StringID)
	}
	begin := time.Now()
	for _, c := range []struct {
		name string
		from client.Position
		want []string
	}{
		{"earliest", client.Earliest, []string{"0", "1", "2", "3"}},
		{"latest", client.Latest, nil},
		{"an hour ago", client.AtTime(time.Now().Add(-time.Hour)), []string{"0", "1", "2", "3"}},
		{"in an hour", client.AtTime(time.Now().Add(time.Hour)), nil},
		{"at the third", client.AtID(ids[2]), []string{"2", "3"}},
		{"behind the third", client.AfterID(ids[2]), []string{"3"}},
		{"behind the last", client.AfterID(ids[3]), nil},
		{"the newest two", client.Newest(2), []string{"2", "3"}},
	} {
		var got []string
		for received, err := range topic.Read(ctx, c.from) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(received.Value))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("from %s (-want +got):\n%s", c.name, diff)
		}
	}
	// A Read that does not find the ends from the statistics waits 15 s for a heartbeat.
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("reading took %s, want at most a minute: Read did not find the ends from the statistics", took)
	}
}

// TestReadEndsWithTheHeartbeat: the last entry of the statistics may not be readable, so a heartbeat ends Read, too.
func TestReadEndsWithTheHeartbeat(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path[strings.LastIndex(r.URL.Path, "/"):] {
		case "/partitions":
			_, _ = fmt.Fprint(w, `{"partitions":0}`)
		case "/internalStats":
			_, _ = fmt.Fprint(w, `{"numberOfEntries":10,"lastConfirmedEntry":"1:9"}`)
		default:
			_, _ = fmt.Fprint(w, "retry: 1000\n\nevent: message\ndata: "+
				"{\"messageId\":\"x\",\"messageStringId\":\"1:8:-1:0\",\"payload\":\"dg==\"}\n\n:\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}))
	defer server.Close()
	count := 0
	for received, err := range newClient(t, client.Config{BaseURL: server.URL}).Topic("t").Read(t.Context(),
		client.Earliest) {
		if err != nil || string(received.Value) != "v" {
			t.Fatalf("got %v, %v", received, err)
		}
		count++
	}
	if count != 1 {
		t.Errorf("read %d messages, want 1", count)
	}
}
