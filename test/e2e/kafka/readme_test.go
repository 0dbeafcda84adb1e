package kafka_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"freshet/test/poll"
	"freshet/test/testserver"
)

// TestReadmeCluster creates the cluster of the page about curl: it becomes Ready, everything that it requests is in
// effect, no event warns, its status has what a Kafka client needs, and the size of its disks limits it.
func TestReadmeCluster(t *testing.T) {
	t.Parallel()
	s := start(t, testserver.Options{})
	defer stop(t, s)
	orders := resources + "messagingclusters/orders"
	send(t, s, http.MethodPatch, orders+"?fieldManager=reader", "application/apply-patch+yaml", readmeManifest(t))
	cluster := awaitReady(t, s, orders)
	if requested := cluster.conditions()["AsRequested"]; requested.Status != "True" {
		t.Errorf("AsRequested: got %+v, want True", requested)
	}
	events := strings.Replace(resources, "cloud.vendor.io/v1alpha1", "events.k8s.io/v1", 1)
	warnings := send(t, s, http.MethodGet, events+"events?fieldSelector=type%3DWarning", "", "")
	if strings.Contains(warnings, `"name":"orders"`) {
		t.Errorf("the cluster of the page about curl has a warning event: %s", warnings)
	}
	name, address := "", ""
	for _, endpoint := range cluster.Status.Endpoints {
		if endpoint.Type == "stream" {
			name, address = endpoint.SASLName, strings.TrimPrefix(endpoint.PathURL, "SASL_PLAINTEXT://")
		}
	}
	if name != "@default/orders" || address != s.Kafka {
		t.Fatalf("stream endpoint: got name %q and address %q, want @default/orders and %s", name, address, s.Kafka)
	}
	limitedByDisks(t, s, orders, name)
}

// limitedByDisks gives a cluster small disks and fills them over HTTP and with a Kafka client.
func limitedByDisks(t *testing.T, s *testserver.Server, path, name string) {
	t.Helper()
	ctx := within(t, time.Minute)
	kafka, err := kgo.NewClient(kgo.SeedBrokers(s.Kafka), kgo.DefaultProduceTopic("full"),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.RecordRetries(1),
		kgo.SASL(plain.Auth{User: name, Pass: "token:" + s.Token}.AsMechanism()))
	if err != nil {
		t.Fatal(err)
	}
	defer kafka.Close()
	if _, err := kadm.NewClient(kafka).CreateTopics(ctx, 1, 1, nil, "full"); err != nil {
		t.Fatal(err)
	}
	send(t, s, http.MethodPatch, path, "application/merge-patch+json", `{"spec": {"storage": {"resources": `+
		`{"cpu": "1", "memory": "4Gi", "ledgerDisk": "48Ki", "journalDisk": "16Ki"}}}}`)
	awaitReady(t, s, path)
	quota := strings.Replace(resources, "apis/cloud.vendor.io/v1alpha1", "api/v1", 1) +
		"resourcequotas/cluster.orders"
	if text := send(t, s, http.MethodGet, quota, "", ""); !strings.Contains(text, `"storedBytes":"64Ki"`) {
		t.Errorf("quota of the cluster: got %s, want 64Ki of storedBytes", text)
	}
	record := func() *kgo.Record { return &kgo.Record{Value: make([]byte, 8<<10)} }
	stored := 0
	for ; stored < 100; stored++ {
		if err = kafka.ProduceSync(ctx, record()).FirstErr(); err != nil {
			break
		}
	}
	if !errors.Is(err, kerr.PolicyViolation) || stored == 0 || stored > 8 {
		t.Errorf("Kafka client: got %v after %d records of 8 KiB, want a policy violation within 64 KiB", err, stored)
	}
	status, text := request(t, s, http.MethodPost, "/clusters/default/orders/admin/rest/topics/v1/public/default/full/"+
		"message", "application/octet-stream", strings.Repeat("x", 16<<10))
	if status != http.StatusForbidden || !strings.Contains(text, "exceeded quota: cluster orders uses") ||
		!strings.Contains(text, "ledgerDisk") {
		t.Errorf("HTTP: got %d %s, want 403 and the disk to raise", status, text)
	}
	send(t, s, http.MethodPatch, path, "application/merge-patch+json",
		`{"spec": {"storage": {"resources": {"ledgerDisk": "1Gi"}}}}`)
	awaitReady(t, s, path)
	if err := kafka.ProduceSync(ctx, record()).FirstErr(); err != nil {
		t.Errorf("after the disk has grown: got %v, want no error", err)
	}
}

// readmeManifest returns the manifest of a cluster in docs/howto/http-apis.md.
func readmeManifest(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/howto/http-apis.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(text), "<<END\n")[1:] {
		if manifest, _, found := strings.Cut(part, "\nEND\n"); found && strings.Contains(manifest,
			"kind: MessagingCluster") {
			return manifest
		}
	}
	t.Fatal("page has no manifest of a cluster")
	return ""
}

// object is a cluster as a client reads it.
type object struct {
	Metadata struct{ Generation int64 }
	Status   struct {
		ObservedGeneration int64
		Conditions         []condition
		Endpoints          []struct{ Type, URL, PathURL, SASLName string }
	}
}

type condition struct{ Type, Status, Reason, Message string }

func (o *object) conditions() map[string]condition {
	all := map[string]condition{}
	for _, c := range o.Status.Conditions {
		all[c.Type] = c
	}
	return all
}

// awaitReady waits until a cluster is ready with its newest spec.
func awaitReady(t *testing.T, s *testserver.Server, path string) *object {
	t.Helper()
	var cluster *object
	poll.Until(t, time.Minute, "the cluster is ready", func() bool {
		cluster = &object{}
		if err := json.Unmarshal([]byte(send(t, s, http.MethodGet, path, "", "")), cluster); err != nil {
			t.Fatal(err)
		}
		return cluster.Status.ObservedGeneration == cluster.Metadata.Generation &&
			cluster.conditions()["Ready"].Status == "True"
	})
	return cluster
}

// send makes a request as the administrator, which must succeed, and returns the response.
func send(t *testing.T, s *testserver.Server, method, path, contentType, body string) string {
	t.Helper()
	status, text := request(t, s, method, path, contentType, body)
	if status != http.StatusOK && status != http.StatusCreated {
		t.Fatalf("%s %s: got %d %s, want success", method, path, status, text)
	}
	return text
}

func request(t *testing.T, s *testserver.Server, method, path, contentType, body string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.Token)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	all, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(fmt.Errorf("reading the response: %w", err))
	}
	return response.StatusCode, string(all)
}
