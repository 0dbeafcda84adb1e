package adminapi_test

import (
	"testing"

	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
)

const historyOf = "/admin/v2/persistent/public/default/"

// TestHistoryOfEachKind checks the shape and the errors of the history. Package history tests the values.
func TestHistoryOfEachKind(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	w.CreateTopic("t", 0)
	w.CreateTopic("p", 2)
	w.commitOffset("t", "g")
	for _, c := range []struct {
		path   string
		status int
		points int
	}{
		{"/admin/v2/history", 200, 60},
		{"/admin/v2/history?range=15m", 200, 60},
		{"/admin/v2/history?range=24h", 200, 144},
		{"/admin/v2/history?range=2h", 400, 0},
		{historyOf + "t/history", 200, 60},
		{historyOf + "p/history", 200, 60},
		{historyOf + "p-partition-1/history", 200, 60},
		{historyOf + "p-partition-2/history", 404, 0},
		{historyOf + "none/history", 404, 0},
		{historyOf + "t/history?range=now", 400, 0},
		{historyOf + "t/subscription/s/history", 200, 60},
		{historyOf + "t/subscription/none/history", 404, 0},
		{historyOf + "none/subscription/s/history", 404, 0},
		{"/rest-stream/admin/v1/groups/g/history", 200, 60},
		{"/rest-stream/admin/v1/groups/g/history?tenant=other", 404, 0},
		{"/rest-stream/admin/v1/groups/none/history", 404, 0},
	} {
		response := w.Call("GET", c.path, "").WantStatus(c.status)
		if c.status != 200 {
			continue
		}
		var got struct {
			Recorded, Incomplete bool
			Out                  []*float64
		}
		response.Decode(&got)
		if len(got.Out) != c.points || got.Recorded || got.Incomplete || got.Out[0] != nil {
			t.Errorf("%s: got %s, want %d points without a value", c.path, response.Body, c.points)
		}
	}
}

// commitOffset commits an offset of a topic for a consumer group.
func (w *harness) commitOffset(topic, group string) {
	w.T.Helper()
	w.Groups()
	w.Call("PUT", "/rest-stream/admin/v1/groups/"+group+"/offsets",
		`{"offsets":[{"topic_name":"`+topic+`","position":"earliest"}]}`).WantStatus(204)
	if _, err := w.Groups().Committed(groups.Key{Tenant: "public", Group: group}); err != nil {
		w.T.Fatal(err)
	}
}

// TestHistoryPermissions checks that each history needs the permissions of the statistics, and that a caller
// without them cannot distinguish an object that exists from one that does not.
func TestHistoryPermissions(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	w.CreateTopic("t", 0)
	w.commitOffset("t", "g")
	w.Bind("producer", "topic-producer", access.Restriction{Tenant: "public", Namespace: "default", Topic: "t"})
	w.Bind("consumer", "topic-consumer", access.Restriction{Tenant: "public", Namespace: "default", Topic: "t"})
	w.Bind("viewer", "metrics-viewer", access.Restriction{})
	w.Bind("reader", "org-readonly", access.Restriction{})
	for _, c := range []struct {
		account                             string
		cluster, topic, subscription, group int
		unknownTopic, unknownGroup          int
	}{
		{"nobody", 403, 403, 403, 403, 403, 403},
		{"producer", 403, 200, 403, 403, 403, 403},
		{"consumer", 403, 200, 200, 200, 403, 403},
		{"viewer", 200, 403, 403, 403, 403, 403},
		{"reader", 200, 200, 200, 200, 404, 404},
	} {
		caller := w.as(w.Account(c.account))
		for path, status := range map[string]int{
			"/admin/v2/history":                         c.cluster,
			historyOf + "t/history":                     c.topic,
			historyOf + "none/history":                  c.unknownTopic,
			historyOf + "t/subscription/s/history":      c.subscription,
			historyOf + "none/subscription/s/history":   c.unknownTopic,
			"/rest-stream/admin/v1/groups/g/history":    c.group,
			"/rest-stream/admin/v1/groups/none/history": c.unknownGroup,
		} {
			if got := caller.Call("GET", path, "").Status; got != status {
				t.Errorf("%s: GET %s: got %d, want %d", c.account, path, got, status)
			}
		}
	}
}
