package pulsar

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/pulsar-client-go/pulsaradmin"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/rest"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/utils"

	"freshet/test/testserver"
)

var server *testserver.Server

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "freshet-pulsar-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary := os.Getenv("FRESHET_BIN")
	if binary == "" {
		binary = filepath.Join(dir, "freshet")
		build := exec.Command("go", "build", "-o", binary, "./cmd/freshet")
		build.Dir = filepath.Join("..", "..", "..")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building freshet: %v\n%s", err, out)
			return 1
		}
	}
	if server, err = testserver.Start(context.Background(), binary, dir, testserver.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer server.Kill()
	return m.Run()
}

func connect(t *testing.T) pulsaradmin.Client {
	t.Helper()
	client, err := pulsaradmin.NewClient(&pulsaradmin.Config{WebServiceURL: server.URL, Token: server.Token})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fails checks that an error has the status and a reason.
func fails(t *testing.T, err error, status int) {
	t.Helper()
	got, ok := err.(rest.Error)
	if !ok || got.Code != status || got.Reason == "" {
		t.Errorf("got %#v, want status %d with a reason", err, status)
	}
}

func topicName(t *testing.T, name string) utils.TopicName {
	t.Helper()
	n, err := utils.GetTopicName(name)
	do(t, err)
	return *n
}

// produce sends a message over HTTP, because the admin client cannot.
func produce(t *testing.T, topic utils.TopicName, payload string) {
	t.Helper()
	url := fmt.Sprintf("%s/admin/rest/topics/v1/%s/message", server.URL, topic.GetRestPath())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(payload))
	do(t, err)
	req.Header.Set("Authorization", "Bearer "+server.Token)
	req.Header.Set("X-Msg-Property-n", payload)
	res, err := http.DefaultClient.Do(req)
	do(t, err)
	defer res.Body.Close()
	if body, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusCreated {
		t.Fatalf("producing: %s: %s", res.Status, body)
	}
}

func TestTenants(t *testing.T) {
	tenants := connect(t).Tenants()
	acme := utils.TenantData{
		Name: "acme-tenants", AdminRoles: []string{"boss"},
		AllowedClusters: []string{"standalone"},
	}
	do(t, tenants.Create(acme))
	fails(t, tenants.Create(acme), 409)
	fails(t, tenants.Create(utils.TenantData{Name: "empty"}), 412)
	list, err := tenants.List()
	if err != nil || !slices.Contains(list, "public") || !slices.Contains(list, "acme-tenants") {
		t.Errorf("list %v, %v", list, err)
	}
	acme.AdminRoles = []string{"a", "b"}
	do(t, tenants.Update(acme))
	got, err := tenants.Get("acme-tenants")
	if err != nil || len(got.AdminRoles) != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
	do(t, tenants.Delete("acme-tenants"))
	_, err = tenants.Get("acme-tenants")
	fails(t, err, 404)
}

func TestNamespaces(t *testing.T) {
	client := connect(t)
	ns := client.Namespaces()
	const name = "public/pulsar-namespaces"
	do(t, ns.CreateNsWithNumBundles(name, 4))
	fails(t, ns.CreateNamespace(name), 409)
	fails(t, ns.CreateNamespace("nobody/x"), 404)
	list, err := ns.GetNamespaces("public")
	if err != nil || !slices.Contains(list, name) {
		t.Errorf("list %v, %v", list, err)
	}
	full, err := utils.GetNamespaceName(name)
	do(t, err)

	do(t, ns.SetNamespaceMessageTTL(name, 60))
	if ttl, err := ns.GetNamespaceMessageTTL(name); err != nil || ttl != 60 {
		t.Errorf("TTL %d, %v", ttl, err)
	}
	do(t, ns.RemoveNamespaceMessageTTL(name))
	do(t, ns.SetRetention(name, utils.NewRetentionPolicies(60, 100)))
	if r, err := ns.GetRetention(name); err != nil || r.RetentionTimeInMinutes != 60 || r.RetentionSizeInMB != 100 {
		t.Errorf("retention %+v, %v", r, err)
	}
	fails(t, ns.SetRetention(name, utils.NewRetentionPolicies(0, 100)), 412)
	do(t, ns.SetBacklogQuota(name, utils.NewBacklogQuota(1000, 0, utils.ProducerException), utils.DestinationStorage))
	if q, err := ns.GetBacklogQuotaMap(name); err != nil || q[utils.DestinationStorage].LimitSize != 1000 ||
		q[utils.DestinationStorage].Policy != utils.ProducerException {
		t.Errorf("quota %+v, %v", q, err)
	}
	do(t, ns.RemoveBacklogQuota(name))
	partitions := 3
	do(t, ns.SetTopicAutoCreation(*full,
		utils.TopicAutoCreationConfig{Allow: true, Type: utils.Partitioned, Partitions: &partitions}))
	if a, err := ns.GetTopicAutoCreation(*full); err != nil || !a.Allow || a.Type != utils.Partitioned ||
		*a.Partitions != 3 {
		t.Errorf("auto-creation %+v, %v", a, err)
	}
	do(t, ns.RemoveTopicAutoCreation(*full))
	do(t, ns.SetSchemaCompatibilityStrategy(*full, utils.SchemaCompatibilityStrategyBackward))
	if s, err := ns.GetSchemaCompatibilityStrategy(*full); err != nil ||
		s != utils.SchemaCompatibilityStrategyBackward {
		t.Errorf("strategy %s, %v", s, err)
	}
	do(t, ns.SetSchemaValidationEnforced(*full, true))
	if v, err := ns.GetSchemaValidationEnforced(*full); err != nil || !v {
		t.Errorf("validation %v, %v", v, err)
	}
	do(t, ns.SetIsAllowAutoUpdateSchema(*full, false))
	do(t, ns.SetDeduplicationStatus(name, true))
	do(t, ns.SetMaxTopicsPerNamespace(*full, 10))
	if n, err := ns.GetMaxTopicsPerNamespace(*full); err != nil || n != 10 {
		t.Errorf("topics %d, %v", n, err)
	}
	do(t, ns.UpdateProperties(*full, map[string]string{"a": "b"}))
	if p, err := ns.GetProperties(*full); err != nil || p["a"] != "b" {
		t.Errorf("properties %v, %v", p, err)
	}
	do(t, ns.RemoveProperties(*full))
	do(t, ns.GrantNamespacePermission(*full, "app", []utils.AuthAction{"produce", "consume"}))
	if p, err := ns.GetNamespacePermissions(*full); err != nil || len(p["app"]) != 2 {
		t.Errorf("permissions %v, %v", p, err)
	}
	policies, err := ns.GetPolicies(name)
	if err != nil || policies.RetentionPolicies.RetentionTimeInMinutes != 60 ||
		policies.AuthPolicies.NamespaceAuth["app"] == nil ||
		!*policies.DeduplicationEnabled || *policies.IsAllowAutoUpdateSchema || !policies.SchemaValidationEnforced ||
		policies.SchemaCompatibilityStrategy != utils.SchemaCompatibilityStrategyBackward {
		t.Errorf("policies %+v, %v", policies, err)
	}
	do(t, ns.RevokeNamespacePermission(*full, "app"))
	do(t, client.Topics().Create(topicName(t, name+"/x"), 0))
	fails(t, ns.DeleteNamespace(name), 409)
	do(t, client.Topics().Delete(topicName(t, name+"/x"), false, true))
	do(t, ns.DeleteNamespace(name))
	fails(t, ns.DeleteNamespace(name), 404)
}

func TestTopics(t *testing.T) {
	client := connect(t)
	topics := client.Topics()
	do(t, client.Namespaces().CreateNamespace("public/pulsar-topics"))
	plain, wide := topicName(t, "public/pulsar-topics/plain"), topicName(t, "public/pulsar-topics/wide")
	do(t, topics.CreateWithProperties(plain, 0, map[string]string{"a": "b"}))
	fails(t, topics.Create(plain, 0), 409)
	do(t, topics.Create(wide, 3))
	do(t, topics.Update(wide, 4))
	fails(t, topics.Update(wide, 2), 422)
	if meta, err := topics.GetMetadata(wide); err != nil || meta.Partitions != 4 {
		t.Errorf("metadata %+v, %v", meta, err)
	}
	ns, err := utils.GetNamespaceName("public/pulsar-topics")
	do(t, err)
	partitioned, rest, err := topics.List(*ns)
	if err != nil || !slices.Equal(partitioned, []string{wide.String()}) || len(rest) != 5 ||
		!slices.Contains(rest, plain.String()) {
		t.Errorf("list %v, %v, %v", partitioned, rest, err)
	}
	if p, err := topics.GetProperties(plain); err != nil || p["a"] != "b" {
		t.Errorf("properties %v, %v", p, err)
	}
	do(t, topics.UpdateProperties(plain, map[string]string{"c": "d"}))
	do(t, topics.RemoveProperty(plain, "a"))
	do(t, topics.GrantPermission(plain, "app", []utils.AuthAction{"produce"}))
	if p, err := topics.GetPermissions(plain); err != nil || len(p["app"]) != 1 {
		t.Errorf("permissions %v, %v", p, err)
	}
	do(t, topics.RevokePermission(plain, "app"))
	do(t, topics.SetMessageTTL(plain, 30))
	if ttl, err := topics.GetMessageTTL(plain); err != nil || ttl != 30 {
		t.Errorf("TTL %d, %v", ttl, err)
	}
	do(t, topics.RemoveMessageTTL(plain))
	do(t, topics.SetRetention(plain, utils.NewRetentionPolicies(5, 6)))
	if r, err := topics.GetRetention(plain, false); err != nil || r.RetentionTimeInMinutes != 5 {
		t.Errorf("retention %+v, %v", r, err)
	}
	do(t, topics.RemoveRetention(plain))
	if r, err := topics.GetRetention(plain, true); err != nil || r.RetentionTimeInMinutes != 7*24*60 {
		t.Errorf("retention in force %+v, %v", r, err)
	}
	do(t, topics.SetDelayedDelivery(plain, utils.DelayedDeliveryData{Active: false, TickTime: 1}))
	do(t, topics.RemoveDelayedDelivery(plain))
	do(t, topics.SetDeduplicationStatus(plain, true))
	do(t, topics.RemoveDeduplicationStatus(plain))
	do(t, topics.SetMaxUnackMessagesPerSubscription(plain, 10))
	if n, err := topics.GetMaxUnackMessagesPerSubscription(plain); err != nil || n != 10 {
		t.Errorf("unacked %d, %v", n, err)
	}
	do(t, topics.SetMaxMessageSize(plain, 1000))
	do(t, topics.SetSchemaCompatibilityStrategy(plain, utils.SchemaCompatibilityStrategyForward))
	do(t, topics.SetSchemaValidationEnforced(plain, false))

	produce(t, plain, "1")
	produce(t, wide, "2")
	if s, err := topics.GetStats(plain); err != nil || s.MsgCounterIn != 1 || s.StorageSize == 0 {
		t.Errorf("stats %+v, %v", s, err)
	}
	if s, err := topics.GetPartitionedStats(wide, true); err != nil || len(s.Partitions) != 4 || s.StorageSize == 0 {
		t.Errorf("partitioned stats %+v, %v", s, err)
	}
	if s, err := topics.GetInternalStats(plain); err != nil || s.NumberOfEntries != 1 || s.State != "LedgerOpened" {
		t.Errorf("internal stats %+v, %v", s, err)
	}
	last, err := topics.GetLastMessageID(plain)
	if err != nil || last.EntryID != 0 || last.PartitionIndex != -1 {
		t.Errorf("last %+v, %v", last, err)
	}
	if id, err := topics.GetMessageID(plain, 0); err != nil || id.EntryID != 0 {
		t.Errorf("first %+v, %v", id, err)
	}
	if id, err := topics.Terminate(plain); err != nil || id.LedgerID != last.LedgerID {
		t.Errorf("terminated at %+v, %v", id, err)
	}
	fails(t, topics.Delete(wide, false, true), 409)
	do(t, topics.Delete(wide, false, false))
	do(t, topics.Delete(plain, true, true))
	fails(t, topics.Delete(plain, true, true), 404)
}

func TestSubscriptions(t *testing.T) {
	client := connect(t)
	subs := client.Subscriptions()
	topic := topicName(t, "public/default/pulsar-subscriptions")
	do(t, subs.Create(topic, "first", utils.Earliest)) // also creates the topic
	fails(t, subs.Create(topic, "first", utils.Latest), 409)
	do(t, subs.Create(topic, "second", utils.Latest))
	if list, err := subs.List(topic); err != nil || !slices.Equal(list, []string{"first", "second"}) {
		t.Errorf("list %v, %v", list, err)
	}
	for i := range 5 {
		produce(t, topic, fmt.Sprint(i))
	}
	msgs, err := subs.PeekMessages(topic, "first", 3)
	if err != nil || len(msgs) != 3 || string(msgs[2].Payload) != "2" || msgs[2].Properties["N"] != "2" ||
		msgs[2].MessageID.EntryID != 2 {
		t.Fatalf("peeked %v, %v", msgs, err)
	}
	one, err := subs.GetMessageByID(topic, msgs[1].MessageID.LedgerID, 1)
	if err != nil || string(one.Payload) != "1" {
		t.Errorf("message %v, %v", one, err)
	}
	backlog := func() int64 {
		t.Helper()
		s, err := client.Topics().GetStats(topic)
		do(t, err)
		return s.Subscriptions["first"].MsgBacklog
	}
	do(t, subs.SkipMessages(topic, "first", 2))
	if n := backlog(); n != 3 {
		t.Errorf("backlog after skipping two messages: got %d, want 3", n)
	}
	do(t, subs.ResetCursorToMessageID(topic, "first", msgs[1].MessageID))
	if n := backlog(); n != 4 {
		t.Errorf("backlog after a reset to the second message: got %d, want 4", n)
	}
	do(t, subs.ResetCursorToTimestamp(topic, "first", 0))
	if n := backlog(); n != 5 {
		t.Errorf("backlog after a reset to the start: got %d, want 5", n)
	}
	do(t, subs.ExpireMessages(topic, "first", 3600))
	do(t, subs.ExpireAllMessages(topic, 3600))
	do(t, subs.ClearBacklog(topic, "first"))
	if n := backlog(); n != 0 {
		t.Errorf("backlog after clearing: got %d, want 0", n)
	}
	do(t, subs.Delete(topic, "first"))
	fails(t, subs.Delete(topic, "first"), 404)
	do(t, subs.ForceDelete(topic, "second"))
}

func TestSchemas(t *testing.T) {
	client := connect(t)
	schemas := client.Schemas()
	const topic = "public/default/pulsar-schemas"
	record := func(fields string) utils.PostSchemaPayload {
		return utils.PostSchemaPayload{
			SchemaType: "AVRO", Schema: `{"type":"record","name":"R","fields":[` + fields + `]}`,
			Properties: map[string]string{"k": "v"},
		}
	}
	first := record(`{"name":"a","type":"string"}`)
	second := record(`{"name":"a","type":"string"},{"name":"b","type":"int","default":0}`)
	bad := record(`{"name":"a","type":"int"}`)
	_, err := schemas.GetSchemaInfo(topic)
	fails(t, err, 404)
	do(t, schemas.CreateSchemaByPayload(topic, first))
	do(t, schemas.CreateSchemaByPayload(topic, second))
	fails(t, schemas.CreateSchemaByPayload(topic, bad), 409)
	fails(t, schemas.CreateSchemaByPayload(topic, utils.PostSchemaPayload{SchemaType: "AVRO", Schema: "{"}), 422)
	latest, err := schemas.GetSchemaInfoWithVersion(topic)
	if err != nil || latest.Version != 1 || latest.SchemaInfo.Type != "AVRO" ||
		string(latest.SchemaInfo.Schema) != second.Schema || latest.SchemaInfo.Properties["k"] != "v" {
		t.Errorf("latest %+v, %v", latest, err)
	}
	if info, err := schemas.GetSchemaInfoByVersion(topic, 0); err != nil || string(info.Schema) != first.Schema {
		t.Errorf("version 0 %+v, %v", info, err)
	}
	if all, err := schemas.GetAllSchemas(topic); err != nil || len(all) != 2 {
		t.Errorf("all %v, %v", all, err)
	}
	if v, err := schemas.GetVersionByPayload(topic, second); err != nil || v != 1 {
		t.Errorf("version %d, %v", v, err)
	}
	if c, err := schemas.TestCompatibilityWithPostSchemaPayload(topic, bad); err != nil || c.IsCompatibility ||
		c.SchemaCompatibilityStrategy != utils.SchemaCompatibilityStrategyFull {
		t.Errorf("compatibility %+v, %v", c, err)
	}
	do(t, schemas.DeleteSchema(topic))
	_, err = schemas.GetSchemaInfo(topic)
	fails(t, err, 404)
	do(t, schemas.CreateSchemaByPayload(topic, bad))
	do(t, schemas.ForceDeleteSchema(topic))
}

func TestWithoutAToken(t *testing.T) {
	client, err := pulsaradmin.NewClient(&pulsaradmin.Config{WebServiceURL: server.URL})
	do(t, err)
	_, err = client.Tenants().List()
	fails(t, err, 401)
}
