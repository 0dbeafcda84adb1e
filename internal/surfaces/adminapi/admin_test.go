package adminapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"freshet/internal/broker/messaging"
)

// step is one request and the expected response.
type step struct {
	method, path, body string
	status             int
	want               string // the expected body; "" for any
}

func (w *harness) play(steps []step) {
	w.T.Helper()
	for _, s := range steps {
		r := w.Call(s.method, "/admin/v2/"+s.path, s.body)
		if r.Status != s.status {
			w.T.Errorf("%s %s %s: status %d, want %d: %s", s.method, s.path, s.body, r.Status, s.status, r.Body)
			continue
		}
		r.WantStatus(s.status)
		if s.want != "" {
			r.WantBody(s.want)
		}
	}
}

func TestTenants(t *testing.T) {
	t.Parallel()
	newHarness(t, messaging.Options{}).play([]step{
		{"GET", "clusters", "", 200, `["prod"]`},
		{"GET", "tenants", "", 200, `["public"]`},
		{"GET", "tenants/", "", 200, `["public"]`},
		{"GET", "tenants/public", "", 200, `{"adminRoles":[],"allowedClusters":["prod"]}`},
		{"GET", "tenants/acme", "", 404, ""},
		{"PUT", "tenants/acme", `{"adminRoles":["boss"],"allowedClusters":["standalone"]}`, 204, ""},
		{"PUT", "tenants/acme", `{"allowedClusters":["standalone"]}`, 409, ""},
		{"GET", "tenants/acme", "", 200, `{"adminRoles":["boss"],"allowedClusters":["standalone"]}`},
		{"POST", "tenants/acme", `{"adminRoles":["a","b"],"allowedClusters":["prod"]}`, 204, ""},
		{"POST", "tenants/nobody", `{"allowedClusters":["prod"]}`, 404, ""},
		{"PUT", "tenants/other", ``, 204, ""},
		{"PUT", "tenants/bad", `{"allowedClusters":[]}`, 412, ""},
		{"PUT", "tenants/bad", `{"allowedClusters":["mars"]}`, 412, ""},
		{"PUT", "tenants/bad%20name", `{"allowedClusters":["prod"]}`, 412, ""},
		{"PUT", "tenants/persistent", `{"allowedClusters":["prod"]}`, 412, ""},
		{"PUT", "tenants/bad", `{"allowedClusters":"prod"}`, 400, ""},
		{"PUT", "tenants/bad", `{`, 400, ""},
		{"PUT", "namespaces/acme/sales", ``, 204, ""},
		{"DELETE", "tenants/acme", "", 409, ""},
		{"DELETE", "tenants/acme?force=true", "", 405, ""},
		{"DELETE", "namespaces/acme/sales", "", 204, ""},
		{"DELETE", "tenants/acme", "", 204, ""},
		{"DELETE", "tenants/acme", "", 404, ""},
	})
}

func TestNamespaces(t *testing.T) {
	t.Parallel()
	newHarness(t, messaging.Options{}).play([]step{
		{"GET", "namespaces/public", "", 200, `["public/default"]`},
		{"GET", "namespaces/nobody", "", 404, ""},
		{"PUT", "namespaces/nobody/x", "", 404, ""},
		{"PUT", "namespaces/public/x", "", 204, ""},
		{"PUT", "namespaces/public/x", "", 409, ""},
		{"PUT", "namespaces/public/a%20b", "", 412, ""},
		{
			"PUT", "namespaces/public/y",
			`{"replication_clusters":["prod"],"bundles":{"numBundles":4},` +
				`"retention_policies":{"retentionTimeInMinutes":1,"retentionSizeInMB":2}}`,
			204, "",
		},
		{"GET", "namespaces/public/y/retention", "", 200, `{"retentionTimeInMinutes":1,"retentionSizeInMB":2}`},
		{
			"PUT", "namespaces/public/z", `{"retention_policies":{"retentionTimeInMinutes":0,"retentionSizeInMB":2}}`,
			412,
			"",
		},
		{"PUT", "namespaces/public/z", `{"message_ttl_in_seconds":"x"}`, 400, ""},
		{"GET", "namespaces/public", "", 200, `["public/default","public/x","public/y"]`},
		{"PUT", "persistent/public/x/t", "", 204, ""},
		{"PUT", "persistent/public/x/p/partitions", "2", 204, ""},
		{
			"GET", "namespaces/public/x/topics", "", 200,
			`["persistent://public/x/p-partition-0","persistent://public/x/p-partition-1","persistent://public/x/t"]`,
		},
		{
			"GET", "persistent/public/x", "", 200,
			`["persistent://public/x/p-partition-0","persistent://public/x/p-partition-1","persistent://public/x/t"]`,
		},
		{"GET", "persistent/public/x/partitioned", "", 200, `["persistent://public/x/p"]`},
		{"GET", "non-persistent/public/x", "", 200, `[]`},
		{"GET", "non-persistent/public/x/partitioned", "", 200, `[]`},
		{"GET", "persistent/public/none", "", 404, ""},
		{"DELETE", "namespaces/public/x", "", 409, ""},
		{"DELETE", "namespaces/public/x?force=true", "", 204, ""},
		{"DELETE", "namespaces/public/x", "", 404, ""},
		{"GET", "namespaces/public/y/properties", "", 200, `{}`},
		{"PUT", "namespaces/public/y/properties", `{"a":"b","c":"d"}`, 204, ""},
		{"PUT", "namespaces/public/y/properties", `{"a":"e"}`, 204, ""},
		{"GET", "namespaces/public/y/properties", "", 200, `{"a":"e","c":"d"}`},
		{"DELETE", "namespaces/public/y/properties", "", 204, ""},
		{"GET", "namespaces/public/y/properties", "", 200, `{}`},
		{"GET", "namespaces/public/y/permissions", "", 200, `{}`},
		{"POST", "namespaces/public/y/permissions/a%40b.example", `["produce","consume","produce"]`, 204, ""},
		{"GET", "namespaces/public/y/permissions", "", 200, `{"a@b.example":["consume","produce"]}`},
		{"POST", "namespaces/public/y/permissions/x", `["fly"]`, 412, ""},
		{"POST", "namespaces/public/y/permissions/x", `{}`, 400, ""},
		{"POST", "namespaces/public/y/permissions/x", ``, 400, ""},
		{"DELETE", "namespaces/public/y/permissions/a%40b.example", "", 204, ""},
		{"GET", "namespaces/public/y/permissions", "", 200, `{}`},
	})
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	w.play([]step{{"PUT", "persistent/public/default/t", "", 204, ""}})
	for _, tc := range []struct {
		namespace, topic string
		standard, set    string
		shown            string
		bad              []string
	}{
		{
			"retention", "retention", `{"retentionTimeInMinutes":10080,"retentionSizeInMB":10240}`,
			`{"retentionTimeInMinutes":-1,"retentionSizeInMB":5}`, "",
			[]string{`{"retentionTimeInMinutes":-2,"retentionSizeInMB":5}`, `5`},
		},
		{"messageTTL", "messageTTL", `0`, `60`, "", []string{`-1`, `"x"`}},
		{"deduplication", "deduplicationEnabled", `false`, `true`, "", []string{`1`}},
		{
			"backlogQuota", "backlogQuota", `{}`, `{"limitSize":5,"policy":"producer_exception"}`,
			`{"destination_storage":{"limit":5,"limitSize":5,"limitTime":-1,"policy":"producer_exception"}}`,
			[]string{`{"limitSize":5,"policy":"x"}`, `{"policy":"producer_exception"}`},
		},
		{
			"maxUnackedMessagesPerSubscription", "maxUnackedMessagesOnSubscription", `200000`, `10`, "",
			[]string{`-1`, `300000`},
		},
		{"", "maxMessageSize", ``, `1000`, "", []string{`6000000`}},
		{
			"delayedDelivery", "delayedDelivery", `{"active":true,"tickTime":1000}`, `{"active":false,"tickTime":1000}`,
			"",
			[]string{`[]`},
		},
		{
			"schemaCompatibilityStrategy", "schemaCompatibilityStrategy", `"FULL"`, `"BACKWARD"`, "",
			[]string{`"SIDEWAYS"`, `5`},
		},
		{"schemaValidationEnforced", "schemaValidationEnforced", `false`, `true`, "", []string{`"true"`}},
		{"schemaSyntaxEnforced", "schemaSyntaxEnforced", `false`, `true`, "", []string{`1`}},
		{"schemaVersionEnforced", "schemaVersionEnforced", `false`, `true`, "", []string{`{}`}},
		{"isAllowAutoUpdateSchema", "", `true`, `false`, "", nil},
		{
			"autoTopicCreation", "", `{"allowAutoTopicCreation":true,"topicType":"non-partitioned"}`,
			`{"allowAutoTopicCreation":true,"topicType":"partitioned","defaultNumPartitions":4}`, "",
			[]string{
				`{"allowAutoTopicCreation":true,"topicType":"partitioned"}`,
				`{"allowAutoTopicCreation":true,"topicType":"x"}`,
			},
		},
		{"maxTopicsPerNamespace", "", `0`, `100`, "", []string{`-1`}},
		{"replication", "", `["prod"]`, `["prod"]`, "", []string{`"prod"`}},
	} {
		shown := tc.shown
		if shown == "" {
			shown = tc.set
		}
		if tc.namespace != "" {
			path := "namespaces/public/default/" + tc.namespace
			w.play([]step{
				{"GET", path, "", 200, tc.standard},
				{"POST", path, tc.set, 204, ""},
				{"GET", path, "", 200, shown},
				{"PUT", path, tc.set, 204, ""},
				{"POST", path, "", 400, ""},
				{"DELETE", path, "", 204, ""},
				{"GET", path, "", 200, tc.standard},
			})
			for _, bad := range tc.bad {
				if r := w.Call("POST", "/admin/v2/"+path, bad); r.Status != 400 && r.Status != 412 {
					t.Errorf("%s %s: status %d, want 400, 412", path, bad, r.Status)
				}
			}
		}
		if tc.topic != "" {
			path := "persistent/public/default/t/" + tc.topic
			w.play([]step{
				{"GET", path, "", 200, `null`},
				{"GET", path + "?applied=true", "", 200, tc.standard},
				{"POST", path, tc.set, 204, ""},
				{"GET", path, "", 200, shown},
				{"DELETE", path, "", 204, ""},
				{"GET", path, "", 200, `null`},
				{"GET", "persistent/public/default/none/" + tc.topic, "", 404, ""},
			})
		}
	}
	w.play([]step{
		{"POST", "persistent/public/default/t/messageTTL?messageTTL=77", "", 204, ""},
		{"GET", "persistent/public/default/t/messageTTL", "", 200, "77"},
		{
			"POST", "namespaces/public/default/backlogQuota?backlogQuotaType=message_age",
			`{"limitTime":5,"policy":"producer_exception"}`, 412, "",
		},
		{"GET", "namespaces/public/default/backlogQuotaMap", "", 200, `{}`},
	})
}

// TestContracts sets, shows and removes the contract of a topic, also when it is created.
func TestContracts(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	const path, bad = "persistent/public/default/t/require", "persistent/public/default/x"
	w.play([]step{
		{"PUT", "persistent/public/default/t?require=size%20%3E%201", "", 204, ""},
		{"GET", path, "", 200, `"size > 1"`},
		{"POST", path, `"payload.total >= 0"`, 204, ""},
		{"GET", path, "", 200, `"payload.total >= 0"`},
		{"POST", path, `"size >"`, 400, ""},
		{"POST", path, `"offset > 1"`, 400, ""},
		{"POST", path, `5`, 400, ""},
		{"POST", path, ``, 400, ""},
		{"GET", path, "", 200, `"payload.total >= 0"`},
		{"PUT", path, `""`, 204, ""},
		{"GET", path, "", 200, `null`},
		{"GET", path + "?applied=true", "", 200, `""`},
		{"PUT", path, `"size > 0"`, 204, ""},
		{"DELETE", path, "", 204, ""},
		{"GET", path, "", 200, `null`},
		{"PUT", "persistent/public/default/none/require", `"size > 0"`, 404, ""},

		{"PUT", bad + "?require=size", "", 400, ""},
		{"GET", bad + "/partitions", "", 404, ""},
		{"PUT", "persistent/public/default/p/partitions?require=size%20%3E%201", "3", 204, ""},
		{"GET", "persistent/public/default/p/require", "", 200, `"size > 1"`},
	})
	create := `{"topic_name":"k","partitions_count":1,"require":"size > 1"}`
	if r := w.Call("POST", "/rest-stream/admin/v1/topics", create); r.Status != 200 {
		t.Errorf("creating a topic in the list: %d %s", r.Status, r.Body)
	}
	w.play([]step{{"GET", "persistent/public/default/k/require", "", 200, `"size > 1"`}})
	if r := w.Call("POST", "/admin/v2/"+path, `"payload.total >"`); !strings.Contains(r.Body, "1:16") {
		t.Errorf("got %s, want the position of the error", r.Body)
	}
}

func TestTopics(t *testing.T) {
	t.Parallel()
	newHarness(t, messaging.Options{}).play([]step{
		{"PUT", "persistent/public/default/t", "", 204, ""},
		{"PUT", "persistent/public/default/t", "", 409, ""},
		{"PUT", "persistent/public/default/t/partitions", "3", 409, ""},
		{"PUT", "persistent/public/default/u", `{"a":"b"}`, 204, ""},
		{"PUT", "persistent/public/default/v", `null`, 204, ""},
		{"PUT", "persistent/public/none/t", "", 404, ""},
		{"PUT", "persistent/none/default/t", "", 404, ""},
		{"PUT", "persistent/public/default/%20t", "", 412, ""},
		{"PUT", "persistent/public/default/t-partition-0", "", 409, ""},
		{"PUT", "non-persistent/public/default/t", "", 400, ""},
		{"PUT", "persistent/public/default/x", `[`, 400, ""},
		{"PUT", "persistent/public/default/x", `{"a":1}`, 400, ""},
		{"PUT", "persistent/public/default/p/partitions", "0", 406, ""},
		{"PUT", "persistent/public/default/p/partitions", "-1", 406, ""},
		{"PUT", "persistent/public/default/p/partitions", "1025", 406, ""},
		{"PUT", "persistent/public/default/p/partitions", `"x"`, 400, ""},
		{"PUT", "persistent/public/default/p/partitions", ``, 400, ""},
		{"PUT", "persistent/public/default/p/partitions", `1.5`, 400, ""},
		{"PUT", "persistent/public/default/p/partitions", `99999999999`, 400, ""},
		{"PUT", "persistent/public/default/p/partitions", `{"partitions":2,"properties":{"a":"b"}}`, 204, ""},
		{"PUT", "persistent/public/default/p/partitions", "2", 409, ""},
		{
			"GET", "persistent/public/default/p/partitions", "", 200,
			`{"partitions":2,"deleted":false,"properties":{"a":"b"}}`,
		},
		{"GET", "persistent/public/default/t/partitions", "", 200, `{"partitions":0,"deleted":false,"properties":{}}`},
		{
			"GET", "persistent/public/default/p-partition-1/partitions", "", 200,
			`{"partitions":0,"deleted":false,"properties":{"a":"b"}}`,
		},
		{"GET", "persistent/public/default/none/partitions", "", 404, ""},
		{"POST", "persistent/public/default/p/partitions", "2", 422, ""},
		{"POST", "persistent/public/default/p/partitions", "9999", 422, ""},
		{"POST", "persistent/public/default/none/partitions", "3", 404, ""},
		{"POST", "persistent/public/default/t/partitions", "3", 409, ""},
		{"POST", "persistent/public/default/p/partitions", "5", 204, ""},
		{"GET", "persistent/public/default/u/properties", "", 200, `{"a":"b"}`},
		{"PUT", "persistent/public/default/u/properties", `{"c":"d"}`, 204, ""},
		{"GET", "persistent/public/default/u/properties", "", 200, `{"a":"b","c":"d"}`},
		{"DELETE", "persistent/public/default/u/properties?key=a", "", 204, ""},
		{"DELETE", "persistent/public/default/u/properties", "", 400, ""},
		{"GET", "persistent/public/default/u/properties", "", 200, `{"c":"d"}`},
		{"GET", "persistent/public/default/u/permissions", "", 200, `{}`},
		{"POST", "persistent/public/default/u/permissions/r", `["consume"]`, 204, ""},
		{"POST", "namespaces/public/default/permissions/r", `["produce"]`, 204, ""},
		{"GET", "persistent/public/default/u/permissions", "", 200, `{"r":["produce","consume"]}`},
		{"DELETE", "persistent/public/default/u/permissions/r", "", 204, ""},
		{"DELETE", "persistent/public/default/u/permissions/r", "", 412, ""},
		{"DELETE", "persistent/public/default/p", "", 409, ""},
		{"DELETE", "persistent/public/default/t/partitions", "", 409, ""},
		{"DELETE", "persistent/public/default/p-partition-0", "", 409, ""},
		{"DELETE", "persistent/public/default/p/partitions", "", 204, ""},
		{"DELETE", "persistent/public/default/p/partitions", "", 404, ""},
		{"DELETE", "persistent/public/default/t?force=true", "", 204, ""},
		{"DELETE", "persistent/public/default/t", "", 404, ""},
	})
}

func TestSubscriptions(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	const topic = "persistent/public/default/t"
	w.play([]step{
		{"PUT", topic + "/subscription/s", "", 204, ""}, // this also creates the topic
		{"PUT", topic + "/subscription/s", "", 409, ""},
		{"PUT", topic + "/subscription/a%2Fb", "", 400, ""},
		{"PUT", "non-persistent/public/default/t/subscription/s", "", 400, ""},
		{"PUT", "persistent/public/none/t/subscription/s", "", 404, ""},
		{"PUT", topic + "/subscription/w", `"earliest"`, 204, ""},
		{"PUT", topic + "/subscription/w2", `"latest"`, 204, ""},
		{"PUT", topic + "/subscription/w3", `earliest`, 204, ""},
		{
			"PUT", topic + "/subscription/w4",
			`{"ledgerId":-1,"entryId":-1,"partitionIndex":-1,"batchIndex":-1,"isExcluded":false,"properties":{}}`, 204,
			"",
		},
		{
			"PUT", topic + "/subscription/w5",
			`{"ledgerId":9223372036854775807,"entryId":9223372036854775807,"partitionIndex":-1}`, 204, "",
		},
		{"PUT", topic + "/subscription/w6", `{"ledgerId":424242,"entryId":0}`, 412, ""},
		{"PUT", topic + "/subscription/w6", `{"ledgerId":1}`, 400, ""},
		{"PUT", topic + "/subscription/w6", `"never"`, 400, ""},
		{"PUT", topic + "/subscription/w6", `{"ledgerId":"x"}`, 400, ""},
		{"GET", topic + "/subscriptions", "", 200, `["s","w","w2","w3","w4","w5"]`},
		{"GET", "persistent/public/default/none/subscriptions", "", 404, ""},
		{"DELETE", topic + "/subscription/w2", "", 204, ""},
		{"DELETE", topic + "/subscription/w2", "", 404, ""},
		{"DELETE", topic + "/subscription/w3?force=true", "", 204, ""},
		{"GET", topic + "/subscription/s/properties", "", 200, `{}`},
		{"PUT", topic + "/subscription/s/properties", `{"a":"b"}`, 204, ""},
		{"GET", topic + "/subscription/s/properties", "", 200, `{"a":"b"}`},
		{"GET", topic + "/subscription/none/properties", "", 404, ""},
		{"POST", topic + "/subscription/none/skip_all", "", 404, ""},
		{"POST", topic + "/subscription/s/skip/x", "", 400, ""},
		{"POST", topic + "/subscription/s/skip/-1", "", 400, ""},
		{"POST", "namespaces/public/default/autoTopicCreation", `{"allowAutoTopicCreation":false}`, 204, ""},
		{"PUT", "persistent/public/default/never/subscription/s", "", 412, ""},
	})
	url := root + "public/default/t"
	var ids []string
	for i := range 5 {
		ids = append(ids, w.Call("POST", url+"/message",
			fmt.Sprint(i)).WantStatus(201).Header.Get("X-Msg-Message-String-Id"))
	}
	ledger := strings.Split(ids[0], ":")[0]
	next := func(want string) {
		t.Helper()
		if want == "" {
			w.Call("POST", url+"/s/message", `{"timeoutMillis":0}`).WantStatus(204)
			return
		}
		w.Call("POST", url+"/s/message", `{"timeoutMillis":0}`).WantStatus(200).WantBody(want)
	}
	w.play([]step{{
		"POST", topic + "/subscription/s/resetcursor",
		fmt.Sprintf(`{"ledgerId":%s,"entryId":2,"partitionIndex":-1}`, ledger), 204, "",
	}})
	next("2")
	w.play([]step{{
		"POST", topic + "/subscription/s/resetcursor",
		fmt.Sprintf(`{"ledgerId":%s,"entryId":2,"partitionIndex":-1,"isExcluded":true}`, ledger), 204, "",
	}})
	next("3")
	w.play([]step{{"POST", topic + "/subscription/s/resetcursor/0", "", 204, ""}})
	next("0")
	w.play([]step{
		{"POST", topic + "/subscription/s/resetcursor", `"earliest"`, 204, ""},
		{"POST", topic + "/subscription/s/skip/4", "", 204, ""},
	})
	next("4")
	w.play([]step{{"POST", topic + "/subscription/s/skip_all", "", 204, ""}})
	next("")
	w.play([]step{
		{"POST", topic + "/subscription/s/resetcursor", `"earliest"`, 204, ""},
		{"POST", topic + "/subscription/s/expireMessages/3600", "", 204, ""},
	})
	next("0")
	w.play([]step{
		{"POST", topic + "/all_subscription/expireMessages/99999999999999", "", 204, ""},
		{"POST", topic + "/subscription/s/resetcursor/x", "", 400, ""},
		{"POST", topic + "/subscription/s/resetcursor", `{"ledgerId":424242,"entryId":0}`, 412, ""},
		{"PUT", "persistent/public/default/p/partitions", "2", 204, ""},
		{"PUT", "persistent/public/default/p/subscription/s", "", 204, ""},
		{"POST", "persistent/public/default/p/subscription/s/skip/1", "", 405, ""},
		{"POST", "persistent/public/default/p/subscription/s/skip_all", "", 204, ""},
		{"GET", "persistent/public/default/p/subscription/s/position/1", "", 405, ""},
		{"GET", "persistent/public/default/p-partition-0/subscription/s/position/1", "", 404, ""},
	})
}

func TestReadingMessagesAndStats(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	url := w.CreateTopic("t", 0)
	start := time.Now().UnixMilli()
	const topic = "/admin/v2/persistent/public/default/t"
	for i := range 3 {
		w.Call("POST", url+"/message", fmt.Sprint(i), "X-Msg-Property-n", fmt.Sprint(i), "X-Msg-Partition-Key", "k",
			"X-Msg-Event-Time", "5").WantStatus(201)
	}
	w.Call("GET", topic+"/subscription/s/position/2", "").WantStatus(200).WantBody("1").
		WantHeaders("X-Pulsar-Property-n", "1", "X-Pulsar-Partition-Key", "k", "X-Pulsar-Event-Time",
			"1970-01-01T00:00:00.005Z", "Content-Type", "application/octet-stream")
	w.Call("GET", topic+"/subscription/s/position/4", "").WantStatus(404)
	w.Call("GET", topic+"/subscription/s/position/0", "").WantStatus(400)
	w.Call("GET", topic+"/subscription/none/position/1", "").WantStatus(404)
	var id struct{ LedgerID, EntryID, PartitionIndex int64 }
	w.Call("GET", topic+"/lastMessageId", "").WantStatus(200).Decode(&id)
	if id.EntryID != 2 || id.PartitionIndex != -1 {
		t.Errorf("last message id: got %+v, want entry 2 and partition -1", id)
	}
	w.Call("GET", fmt.Sprintf("%s/ledger/%d/entry/1", topic, id.LedgerID), "").WantStatus(200).WantBody("1")
	w.Call("GET", fmt.Sprintf("%s/ledger/%d/entry/9", topic, id.LedgerID), "").WantStatus(404)
	w.Call("GET", fmt.Sprintf("%s/ledger/%d/entry/1", topic, id.LedgerID+1), "").WantStatus(404)
	w.Call("GET", topic+"/ledger/x/entry/1", "").WantStatus(400)
	w.Call("GET", fmt.Sprintf("%s/messageid/%d", topic, start), "").WantStatus(200).Decode(&id)
	if id.EntryID != 0 {
		t.Errorf("message id at the start time: got %+v, want entry 0", id)
	}
	w.Call("GET", topic+"/messageid/99999999999999", "").WantStatus(404)
	var stats struct {
		MsgInCounter  int64
		StorageSize   int64
		Subscriptions map[string]struct {
			MsgBacklog, UnackedMessages int64
			Type                        string
		}
	}
	w.Call("POST", url+"/s/message", "").WantStatus(200)
	w.Call("GET", topic+"/stats", "").WantStatus(200).Decode(&stats)
	if s := stats.Subscriptions["s"]; stats.MsgInCounter != 3 || stats.StorageSize == 0 || s.MsgBacklog != 3 ||
		s.UnackedMessages != 1 || s.Type != "Shared" {
		t.Errorf("statistics: got %+v, want 3 messages in, a backlog of 3, 1 unacknowledged, type Shared", stats)
	}
	w.Call("GET", topic+"/internalStats", "").WantStatus(200)
	w.Call("GET", topic+"/partitioned-stats", "").WantStatus(404)
	w.Call("POST", topic+"/terminate", "").WantStatus(200).Decode(&id)
	if id.EntryID != 2 {
		t.Errorf("terminated: got last message id %+v, want entry 2", id)
	}
	w.Call("POST", url+"/message", "x").WantStatus(409)

	w.CreateTopic("p", 2)
	const parted = "/admin/v2/persistent/public/default/p"
	var sum struct {
		Metadata   struct{ Partitions int }
		Partitions map[string]struct{ Subscriptions map[string]any }
	}
	w.Call("GET", parted+"/partitioned-stats", "").WantStatus(200).Decode(&sum)
	if sum.Metadata.Partitions != 2 ||
		len(sum.Partitions["persistent://public/default/p-partition-1"].Subscriptions) != 1 {
		t.Errorf("partitioned statistics: got %+v, want 2 partitions with 1 subscription each", sum)
	}
	w.Call("GET", parted+"/stats", "").WantStatus(404)
	w.Call("GET", parted+"-partition-0/stats", "").WantStatus(200)
	w.Call("GET", parted+"/internalStats", "").WantStatus(405)
	w.Call("POST", parted+"/terminate", "").WantStatus(405)
}

func TestSchemas(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	const base = "schemas/public/default/t/"
	avro := func(fields string) string {
		return `{"type":"AVRO","schema":"{\"type\":\"record\",\"name\":\"R\",\"fields\":[` + fields + `]}",` +
			`"properties":{}}`
	}
	v0 := avro(`{\"name\":\"a\",\"type\":\"string\"}`)
	v1 := avro(`{\"name\":\"a\",\"type\":\"string\"},{\"name\":\"b\",\"type\":\"int\",\"default\":0}`)
	no := avro(`{\"name\":\"c\",\"type\":\"string\"}`)
	w.play([]step{
		{"GET", base + "schema", "", 404, ""},
		{"POST", base + "schema", v0, 200, `{"version":{"version":0}}`},
		{"POST", base + "schema", v0, 200, `{"version":{"version":0}}`},
		{"POST", base + "schema", v1, 200, `{"version":{"version":1}}`},
		{"POST", base + "schema", no, 409, ""},
		{"POST", base + "schema", `{"type":"AVRO","schema":"{"}`, 422, ""},
		{"POST", base + "schema", `{"type":"XML","schema":""}`, 422, ""},
		{"POST", base + "schema", `{"schema":""}`, 422, ""},
		{"POST", base + "schema", `{"type":5}`, 400, ""},
		{"POST", base + "schema", ``, 400, ""},
		{"POST", base + "schema", `{`, 400, ""},
		{"POST", "schemas/public/none/t/schema", v0, 404, ""},
		{"GET", base + "schema/9", "", 404, ""},
		{"GET", base + "schema/x", "", 400, ""},
		{"POST", base + "compatibility", v1, 202, `{"compatibility":true,"schemaCompatibilityStrategy":"FULL"}`},
		{"POST", base + "compatibility", no, 202, `{"compatibility":false,"schemaCompatibilityStrategy":"FULL"}`},
		{"POST", base + "version", v1, 200, `{"version":1}`},
		{"POST", base + "version", no, 404, ""},
		{"GET", base + "metadata", "", 200, ""},
	})
	var got struct {
		Version   int64
		Type      string
		Timestamp int64
		Data      string
	}
	w.Call("GET", "/admin/v2/"+base+"schema/0", "").WantStatus(200).Decode(&got)
	if got.Version != 0 || got.Type != "AVRO" || got.Timestamp == 0 || !strings.Contains(got.Data, `"name":"a"`) {
		t.Errorf("version 0: got %+v, want an AVRO schema with field a and a timestamp", got)
	}
	w.Call("GET", "/admin/v2/"+base+"schema", "").WantStatus(200).Decode(&got)
	if got.Version != 1 {
		t.Errorf("latest version: got %+v, want version 1", got)
	}
	var all struct{ GetSchemaResponses []any }
	w.Call("GET", "/admin/v2/"+base+"schemas", "").WantStatus(200).Decode(&all)
	if len(all.GetSchemaResponses) != 2 {
		t.Errorf("all versions: got %+v, want 2 of them", all)
	}
	w.play([]step{
		{"DELETE", base + "schema", "", 200, `{"version":2}`},
		{"GET", base + "schema", "", 404, ""},
		{"GET", base + "schema/0", "", 200, ""},
		{"DELETE", base + "schema", "", 404, ""},
		{"POST", base + "schema", no, 200, `{"version":{"version":3}}`},
		{"PUT", "namespaces/public/default/schemaCompatibilityStrategy", `"ALWAYS_COMPATIBLE"`, 204, ""},
		{"POST", base + "schema", `{"type":"STRING","schema":""}`, 200, `{"version":{"version":4}}`},
		{"DELETE", base + "schema?force=true", "", 200, ""},
		{"GET", base + "schema/0", "", 404, ""},
	})
}

func TestPayloadsAreValidatedOnRequest(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	w.play([]step{
		{
			"POST", "schemas/public/default/t/schema",
			`{"type":"JSON","schema":"{\"type\":\"record\",\"name\":\"R\",` +
				`\"fields\":[{\"name\":\"a\",\"type\":\"string\"}]}"}`,
			200, "",
		},
	})
	topic := root + "public/default/t/message"
	w.Call("POST", topic, `{"a":5}`).WantStatus(201)
	w.play([]step{{"POST", "namespaces/public/default/schemaValidationEnforced", "true", 204, ""}})
	w.Call("POST", topic, `{"a":5}`).WantStatus(400)
	w.Call("POST", topic, `{"a":"b"}`).WantStatus(201)
}

func TestTopicList(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	w.play([]step{
		{"PUT", "tenants/acme", "", 204, ""},
		{"PUT", "namespaces/acme/sales", "", 204, ""},
		{"PUT", "persistent/public/default/plain", "", 204, ""},
		{"PUT", "persistent/public/default/__internal", "", 204, ""},
		{"PUT", "persistent/acme/sales/wide/partitions", "4", 204, ""},
	})
	const list = "/rest-stream/admin/v1/topics"
	wide := `{"kind":"StreamTopic","topic_name":"acme.sales.wide","is_internal":false,"partitions_count":4}`
	internal := `{"kind":"StreamTopic","topic_name":"__internal","is_internal":true,"partitions_count":1}`
	plain := `{"kind":"StreamTopic","topic_name":"plain","is_internal":false,"partitions_count":1}`
	all := func(topics ...string) string {
		return `{"kind":"StreamTopicList","data":[` + strings.Join(topics, ",") + `]}`
	}
	w.Call("GET", list, "").WantStatus(200).WantBody(all(wide, internal, plain)).WantHeaders("Content-Type",
		"application/json")
	w.Call("GET", list+"?namespace=acme/sales", "").WantStatus(200).WantBody(all(wide))
	w.Call("GET", list+"?namespace=acme.sales", "").WantStatus(200).WantBody(all(wide))
	w.Call("GET", list+"?namespace=default", "").WantStatus(200).WantBody(all(internal, plain))
	w.Call("GET", list+"?namespace=nobody/there", "").WantStatus(200).WantBody(all())
	w.Call("GET", list+"?namespace=a%20b", "").WantStatus(400)
	w.as("").Call("GET", list, "").WantStatus(401)
	w.as(w.Account("nobody")).Call("GET", list, "").WantStatus(200).WantBody(all())

	w.Call("POST", list, `{"topic_name":"acme.sales.made.here","partitions_count":2}`).WantStatus(200).
		WantBody(`{"kind":"StreamTopic","topic_name":"acme.sales.made.here","is_internal":false,"partitions_count":2}`)
	w.Call("GET", "/admin/v2/persistent/acme/sales/made.here/partitions", "").WantStatus(200)
	w.Call("POST", list, `{"topic_name":"bare"}`).WantStatus(200)
	w.Call("POST", list, `{"topic_name":"bare"}`).WantStatus(409)
	w.Call("POST", list, `{"topic_name":"no.such.place"}`).WantStatus(404)
	for _, body := range []string{
		``, `{}`, `{"topic_name":""}`, `{"topic_name":"x","partitions_count":0}`,
		`{"topic_name":"x","partitions_count":9999}`, `{"topic_name":" "}`, `[]`,
	} {
		if r := w.Call("POST", list, body); r.Status != 400 {
			t.Errorf("%s: status %d: %s, want 400", body, r.Status, r.Body)
		}
	}
}
