package adminapi_test

import (
	"fmt"
	"testing"
	"time"

	"freshet/internal/base/names"
	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
	"freshet/internal/ops/audit"
	"freshet/test/tally"
)

const groupsPath = "/rest-stream/admin/v1/groups"

// groupResponse is a consumer group in a response.
type groupResponse struct {
	GroupID, Tenant, State string
	Lag                    uint64
	Members                []struct {
		MemberID   string `json:"member_id"`
		ClientHost string `json:"client_host"`
		Assignment []struct {
			TopicName  string `json:"topic_name"`
			Partitions []int32
		}
	}
	Offsets []struct {
		TopicName   string `json:"topic_name"`
		PartitionID int32  `json:"partition_id"`
		Offset      int64
		EndOffset   uint64 `json:"end_offset"`
		Lag         uint64
	}
}

// commit commits offsets for a group without members.
func (w *harness) commit(group string, topic names.Topic, offsets ...int64) {
	w.T.Helper()
	t, err := w.Broker.Kafka.KafkaTopic(w.T.Context(), topic)
	if err != nil {
		w.T.Fatal(err)
	}
	req := &groups.CommitRequest{Generation: -1, Offsets: map[groups.Partition]groups.Offset{}}
	for i, o := range offsets {
		req.Offsets[groups.PartitionOf(t.ID(), int32(i))] = groups.Offset{Offset: o}
	}
	if err := w.Groups().Commit(w.T.Context(), groups.Key{Tenant: topic.Namespace.Tenant, Group: group},
		req); err != nil {
		w.T.Fatal(err)
	}
}

// join makes a group stable with one member. The returned function removes the member.
func (w *harness) join(group string) (leave func()) {
	w.T.Helper()
	key := groups.Key{Tenant: "public", Group: group}
	joined, err := w.Groups().Join(w.T.Context(), key, &groups.JoinRequest{
		ClientID: "c", ClientHost: "/127.0.0.1", SessionTimeout: time.Minute, RebalanceTimeout: time.Minute,
		Type:      "consumer",
		Protocols: []groups.Protocol{{Name: "range"}},
	})
	if err == nil {
		_, err = w.Groups().Sync(w.T.Context(), key, &groups.SyncRequest{
			MemberID: joined.MemberID, Generation: joined.Generation,
			Assignments: map[string][]byte{joined.MemberID: []byte(assignment)},
		})
	}
	if err != nil {
		w.T.Fatal(err)
	}
	return func() {
		if _, err := w.Groups().Leave(key, groups.Caller{},
			[]groups.LeavingMember{{MemberID: joined.MemberID}}); err != nil {
			w.T.Fatal(err)
		}
	}
}

// assignment has both partitions of orders, encoded as by a Kafka consumer.
const assignment = "\x00\x01\x00\x00\x00\x01\x00\x06orders\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x00" +
	"\xff\xff\xff\xff"

func orders() names.Topic { return names.Topic{Namespace: names.PublicDefault, Local: "orders"} }

func TestGroups(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("orders", 2)
	w.Groups()
	for i := range 5 {
		w.Call("POST", topic+"-partition-0/message", fmt.Sprint(i), "X-Msg-Event-Time",
			fmt.Sprint(1000+i)).WantStatus(201)
	}
	w.Call("POST", topic+"-partition-1/message", "x").WantStatus(201)
	w.Call("GET", groupsPath, "").WantStatus(200).WantBody(`{"kind":"StreamGroupList","data":[]}`)
	w.Call("GET", groupsPath+"/billing", "").WantStatus(404)
	w.commit("billing", orders(), 2, 1)
	leave := w.join("billing")

	w.Call("GET", groupsPath, "").WantStatus(200).WantBody(
		`{"kind":"StreamGroupList","data":[{"kind":"StreamGroup","tenant":"public","group_id":"billing",` +
			`"state":"Stable","group_type":"classic","protocol_type":"consumer"}]}`)
	w.Call("GET", groupsPath+"?tenant=none", "").WantStatus(200).WantBody(`{"kind":"StreamGroupList","data":[]}`)
	w.Call("GET", groupsPath+"/billing?tenant=none", "").WantStatus(404)
	var got groupResponse
	w.Call("GET", groupsPath+"/billing", "").WantStatus(200).Decode(&got)
	if got.State != "Stable" || got.Lag != 3 || len(got.Members) != 1 || got.Members[0].ClientHost != "/127.0.0.1" ||
		len(got.Offsets) != 2 {
		t.Fatalf("got %+v, want a stable group with one member and a lag of 3", got)
	}
	if a := fmt.Sprint(got.Members[0].Assignment); a != "[{orders [0 1]}]" {
		t.Errorf("assignment: got %s, want both partitions of orders", a)
	}
	if o := got.Offsets[0]; o.TopicName != "orders" || o.PartitionID != 0 || o.Offset != 2 ||
		o.EndOffset != 5 || o.Lag != 3 {
		t.Errorf("first offset: got %+v, want 2 of 5 in partition 0 of orders", o)
	}

	var stats struct {
		Subscriptions map[string]any
		Groups        map[string]struct {
			State   string
			Members int
			Lag     uint64
		}
	}
	w.Call("GET", "/admin/v2/persistent/public/default/orders/partitioned-stats", "").WantStatus(200).Decode(&stats)
	if g := stats.Groups["billing"]; g.State != "Stable" || g.Members != 1 || g.Lag != 3 ||
		len(stats.Subscriptions) != 1 {
		t.Errorf("statistics: got %+v, want the group under its own key and one subscription", stats)
	}
	stats.Groups = nil
	w.Call("GET", "/admin/v2/persistent/public/default/orders-partition-1/stats", "").WantStatus(200).Decode(&stats)
	if g := stats.Groups["billing"]; g.Lag != 0 || len(stats.Groups) != 1 {
		t.Errorf("statistics of partition 1: got %+v, want the group with no lag", stats.Groups)
	}

	move := `{"offsets":[{"topic_name":"orders","position":"earliest"}]}`
	w.Call("PUT", groupsPath+"/billing/offsets", move).WantStatus(409)
	w.Call("DELETE", groupsPath+"/billing", "").WantStatus(409)
	leave()
	w.Call("PUT", groupsPath+"/billing/offsets", move).WantStatus(204)
	w.wantLag("billing", 6)
	w.Call("PUT", groupsPath+"/billing/offsets",
		`{"offsets":[{"topic_name":"orders","partition_id":0,"timestamp":1003},`+
			`{"topic_name":"orders","partition_id":1,"offset":1}]}`).WantStatus(204)
	w.wantLag("billing", 2)
	w.Call("PUT", groupsPath+"/billing/offsets",
		`{"offsets":[{"topic_name":"persistent://public/default/orders","position":"latest"}]}`).WantStatus(204)
	w.wantLag("billing", 0)
	w.Call("PUT", groupsPath+"/fresh%2Fgroup/offsets", move).WantStatus(204)
	w.wantLag("fresh%2Fgroup", 6)
	w.Call("DELETE", groupsPath+"/billing", "").WantStatus(204)
	w.Call("DELETE", groupsPath+"/billing", "").WantStatus(404)
}

func (w *harness) wantLag(group string, want uint64) {
	w.T.Helper()
	var got groupResponse
	if w.Call("GET", groupsPath+"/"+group, "").WantStatus(200).Decode(&got); got.Lag != want {
		w.T.Errorf("lag of %s: got %d, want %d", group, got.Lag, want)
	}
}

func TestInvalidGroupOffsets(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	w.CreateTopic("orders", 2)
	w.Groups()
	for body, status := range map[string]int{
		``: 400, `{}`: 400, `[]`: 400, `{"offsets":[]}`: 400,
		`{"offsets":[{"position":"latest"}]}`:                                             400,
		`{"offsets":[{"topic_name":"orders"}]}`:                                           400,
		`{"offsets":[{"topic_name":"orders","offset":0,"position":"latest"}]}`:            400,
		`{"offsets":[{"topic_name":"orders","position":"middle"}]}`:                       400,
		`{"offsets":[{"topic_name":"orders","offset":1}]}`:                                400,
		`{"offsets":[{"topic_name":"orders","offset":-1}]}`:                               400,
		`{"offsets":[{"topic_name":"orders","timestamp":-1}]}`:                            400,
		`{"offsets":[{"topic_name":"orders","partition_id":2,"position":"latest"}]}`:      404,
		`{"offsets":[{"topic_name":"orders-partition-0","position":"latest"}]}`:           400,
		`{"offsets":[{"topic_name":"none","position":"latest"}]}`:                         404,
		`{"offsets":[{"topic_name":"orders","offset":0},{"topic_name":"no","offset":0}]}`: 404,
	} {
		if r := w.Call("PUT", groupsPath+"/g/offsets", body); r.Status != status {
			t.Errorf("%s: got status %d %s, want %d", body, r.Status, r.Body, status)
		}
	}
	long := fmt.Sprintf("%0250d", 1)
	w.Call("PUT", groupsPath+"/"+long+"/offsets",
		`{"offsets":[{"topic_name":"orders","position":"latest"}]}`).WantStatus(400)
	w.Call("GET", groupsPath, "").WantStatus(200).WantBody(`{"kind":"StreamGroupList","data":[]}`)
}

// TestGroupPermissions: calls on consumer groups need a permission on the group, which is a
// resource of the tenant, or on all topics that the group reads.
func TestGroupPermissions(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	w.CreateTopic("orders", 0)
	w.CreateTopic("secrets", 0)
	secrets := names.Topic{Namespace: names.PublicDefault, Local: "secrets"}
	w.commit("billing", orders(), 0)
	w.commit("both", orders(), 0)
	w.commit("both", secrets, 0)
	w.commit("spies", secrets, 0)
	onOrders := access.Restriction{Tenant: "public", Namespace: "default", TopicDomain: "persistent", Topic: "orders"}
	w.Bind("reader", "topic-consumer", onOrders)
	w.Bind("owner", "topic-owner", onOrders)
	w.Bind("named", "topic-consumer", access.Restriction{Tenant: "public", Subscription: "billing"})
	reader, owner, named, nobody := w.as(w.Account("reader")), w.as(w.Account("owner")), w.as(w.Account("named")),
		w.as(w.Account("nobody"))

	listed := func(w *harness) (ids string) {
		var list struct {
			Data []struct {
				GroupID string `json:"group_id"`
			}
		}
		w.Call("GET", groupsPath, "").WantStatus(200).Decode(&list)
		for _, g := range list.Data {
			ids += g.GroupID + " "
		}
		return ids
	}
	for caller, tc := range map[string]struct {
		w    *harness
		want string
	}{
		"reader": {reader, "billing "}, "named": {named, "billing "}, "nobody": {nobody, ""},
		"administrator": {w, "billing both spies "},
	} {
		if got := listed(tc.w); got != tc.want {
			t.Errorf("%s: listed groups %q, want %q", caller, got, tc.want)
		}
	}
	reader.Call("GET", groupsPath+"/billing", "").WantStatus(200)
	named.Call("GET", groupsPath+"/billing", "").WantStatus(200)
	reader.Call("GET", groupsPath+"/both", "").WantStatus(403) // the group also reads secrets
	reader.Call("GET", groupsPath+"/spies", "").WantStatus(403)
	reader.Call("GET", groupsPath+"/none", "").WantStatus(403)
	nobody.Call("GET", groupsPath+"/billing", "").WantStatus(403)
	w.as("").Call("GET", groupsPath, "").WantStatus(401)

	body := func(topic string) string {
		return fmt.Sprintf(`{"offsets":[{"topic_name":%q,"position":"latest"}]}`, topic)
	}
	reader.Call("PUT", groupsPath+"/billing/offsets", body("orders")).WantStatus(204)
	reader.Call("PUT", groupsPath+"/new/offsets", body("orders")).WantStatus(204)
	reader.Call("PUT", groupsPath+"/both/offsets", body("orders")).WantStatus(403)
	reader.Call("PUT", groupsPath+"/billing/offsets", body("secrets")).WantStatus(403)
	reader.Call("PUT", groupsPath+"/billing/offsets", body("none")).WantStatus(403)
	reader.Call("PUT", groupsPath+"/g/offsets?tenant=other", body("orders")).WantStatus(403)
	named.Call("PUT", groupsPath+"/both/offsets", body("orders")).WantStatus(403)
	nobody.Call("PUT", groupsPath+"/billing/offsets", body("orders")).WantStatus(403)
	reader.Call("DELETE", groupsPath+"/billing", "").WantStatus(403)
	owner.Call("DELETE", groupsPath+"/both", "").WantStatus(403) // the group also reads secrets
	owner.Call("DELETE", groupsPath+"/none", "").WantStatus(403)
	owner.Call("DELETE", groupsPath+"/billing", "").WantStatus(204)
	if last := w.Log.Last(); last.Decision != audit.Allowed || last.Verb != "delete" ||
		last.Resource != "subscriptions" {
		t.Errorf("audit record of a deletion: got %+v, want an allowed delete of subscriptions", last)
	}
	w.Call("DELETE", groupsPath+"/both", "").WantStatus(204)
}

// TestTenantAdministratorsManageGroups: a tenant's administrators may manage the consumer
// groups of the tenant.
func TestTenantAdministratorsManageGroups(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	w.CreateTopic("orders", 0)
	w.commit("billing", orders(), 0)
	chief := w.as(w.Account("chief"))
	chief.Call("GET", groupsPath+"/billing", "").WantStatus(403)
	w.Call("POST", "/admin/v2/tenants/public",
		fmt.Sprintf(`{"adminRoles":[%q],"allowedClusters":["standalone"]}`, w.Principal("chief"))).WantStatus(204)
	chief.Call("GET", groupsPath+"/billing", "").WantStatus(200)
	chief.Call("DELETE", groupsPath+"/billing", "").WantStatus(204)
}

// TestClusterWithoutGroups: a cluster without the Kafka protocol responds with 404 and
// not with an empty list.
func TestClusterWithoutGroups(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	w.CreateTopic("orders", 0)
	w.Call("GET", groupsPath, "").WantStatus(404)
	w.Call("GET", groupsPath+"/billing", "").WantStatus(404)
	w.Call("DELETE", groupsPath+"/billing", "").WantStatus(404)
	w.Call("PUT", groupsPath+"/billing/offsets", `{}`).WantStatus(404)
	w.Call("GET", "/admin/v2/persistent/public/default/orders/stats", "").WantStatus(200)
}

// TestAttackGroupsOfOthers: a reader of one topic adds that topic to the group of others, and looks for the group in
// the statistics of the topic. It sees and changes nothing of the group.
func TestAttackGroupsOfOthers(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	w.CreateTopic("orders", 0)
	w.CreateTopic("mine", 0)
	mine := names.Topic{Namespace: names.PublicDefault, Local: "mine"}
	w.commit("billing", orders(), 0)
	w.commit("shared", orders(), 0)
	w.commit("shared", mine, 0)
	key := groups.Key{Tenant: "public", Group: "joined"}
	leave := w.join(key.Group)
	defer leave()
	w.Bind("reader", "topic-owner",
		access.Restriction{Tenant: "public", Namespace: "default", TopicDomain: "persistent", Topic: "mine"})
	reader := w.as(w.Account("reader"))
	attempts, successes := 0, 0
	try := func(method, path, body string, allowed int) {
		t.Helper()
		attempts++
		if r := reader.Call(method, path, body); r.Status != allowed {
			successes++
			t.Errorf("%s %s: got status %d %s, want %d", method, path, r.Status, r.Body, allowed)
		}
	}
	add := `{"offsets":[{"topic_name":"mine","position":"earliest"}]}`
	for _, group := range []string{"billing", "shared"} {
		try("PUT", groupsPath+"/"+group+"/offsets", add, 403)
		try("GET", groupsPath+"/"+group, "", 403)
		try("DELETE", groupsPath+"/"+group, "", 403)
	}
	try("GET", groupsPath+"/missing", "", 403)
	try("DELETE", groupsPath+"/missing", "", 403)
	var list struct{ Data []any }
	reader.Call("GET", groupsPath, "").WantStatus(200).Decode(&list)
	var stats struct{ Groups map[string]any }
	reader.Call("GET", "/admin/v2/persistent/public/default/mine/stats", "").WantStatus(200).Decode(&stats)
	if attempts += 2; len(list.Data)+len(stats.Groups) != 0 {
		successes++
		t.Errorf("got groups %v, and %v in the statistics; want none", list.Data, stats.Groups)
	}
	w.Call("GET", "/admin/v2/persistent/public/default/mine/stats", "").WantStatus(200).Decode(&stats)
	if len(stats.Groups) != 1 {
		t.Errorf("statistics for the administrator: got %v, want the group that reads both topics", stats.Groups)
	}
	tally.Attack(t, "consumer groups of others over HTTP", attempts, successes)
}
