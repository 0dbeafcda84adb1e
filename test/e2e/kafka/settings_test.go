package kafka_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"freshet/test/testserver"
)

const resources = "/apis/cloud.vendor.io/v1alpha1/namespaces/default/"

// create creates an object in the resource API.
func create(t *testing.T, s *testserver.Server, kind, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+resources+kind,
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.Token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if text, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusCreated {
		t.Fatalf("%s: got %d %s, want 201", kind, response.StatusCode, text)
	}
}

// TestSettings checks that clients on the same machine can connect without credentials as the
// account that the configuration names, and that the metrics contain their requests and the
// lag of consumer groups.
func TestSettings(t *testing.T) {
	t.Parallel()
	s := start(t, testserver.Options{Env: []string{
		"FRESHET_STREAM_ANONYMOUS=default/guest",
		"FRESHET_METRICS_TOPICS=true",
	}})
	defer stop(t, s)
	ctx := within(t, time.Minute)
	guest, err := kgo.NewClient(kgo.SeedBrokers(s.Kafka), kgo.RetryTimeout(time.Second), kgo.ConsumeTopics("orders"),
		kgo.ConsumerGroup("team"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	if err != nil {
		t.Fatal(err)
	}
	defer guest.Close()
	if err := guest.Ping(ctx); err == nil {
		t.Error("before the account exists: connected without credentials")
	}
	create(t, s, "serviceaccounts", `{"metadata": {"name": "guest"}}`)
	create(t, s, "rolebindings",
		`{"metadata": {"name": "guests"}, "spec": {"roleRef": {"kind": "ClusterRole", "name": "topic-consumer"}, `+
			`"subjects": [{"kind": "ServiceAccount", "name": "guest"}]}}`)
	admin := client(t, s, kgo.DefaultProduceTopic("orders"))
	if _, err := kadm.NewClient(admin).CreateTopics(ctx, 1, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if err := admin.ProduceSync(ctx,
			&kgo.Record{Key: fmt.Append(nil, i), Value: []byte("x")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for seen := 0; seen < 4; {
		fetches := guest.PollRecords(ctx, 4-seen)
		// The client may have asked for the topic before the account had its role.
		if err := fetches.Err(); err != nil && (seen > 0 || !errors.Is(err, kerr.TopicAuthorizationFailed)) {
			t.Fatalf("as the guest: %v", err)
		}
		seen += fetches.NumRecords()
	}
	if err := guest.CommitUncommittedOffsets(ctx); err != nil {
		t.Fatal(err)
	}
	if err := guest.ProduceSync(ctx, &kgo.Record{Topic: "orders", Value: []byte("x")}).FirstErr(); err == nil {
		t.Error("guest, which may only consume, could produce")
	}
	page := metrics(t, s)
	for _, want := range []string{
		`freshet_group_lag_messages{cluster="default",group="team",organization="default",tenant="public",` +
			`topic="orders"} 6`,
		`freshet_group_members{cluster="default",group="team",organization="default",tenant="public"} 1`,
		`freshet_groups{active="true",cluster="default",organization="default",type="classic"} 1`,
		`freshet_groups_left_out{cluster="default",organization="default"} 0`,
		`freshet_group_partition_lag_messages{cluster="default",group="team",organization="default",partition=`,
		`freshet_stream_connections{listener="plain"} `, `freshet_stream_clients{software="kgo",`,
		`freshet_stream_requests_total{api="Produce"} `,
		`freshet_stream_response_bytes_total{api="Fetch"} `, `freshet_stream_refused_total `,
		`freshet_stream_fetch_sessions `,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("metrics do not contain %s", want)
		}
	}
	// A group whose id is not valid UTF-8 is only counted.
	offsets := make(kadm.Offsets)
	offsets.AddOffset("orders", 0, 1, -1)
	for _, group := range []string{"a\xff", "a\xfe"} {
		if err := kadm.NewClient(admin).CommitAllOffsets(ctx, group, offsets); err != nil {
			t.Fatal(err)
		}
	}
	if want := `freshet_groups_left_out{cluster="default",organization="default"} 2`; !strings.Contains(metrics(t, s),
		want) {
		t.Errorf("metrics do not contain %s", want)
	}
}

func metrics(t *testing.T, s *testserver.Server) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Ops+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	page, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("metrics: got %d %s, %v; want 200", response.StatusCode, page, err)
	}
	return string(page)
}
