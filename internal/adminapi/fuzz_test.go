package adminapi_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"freshet/internal/messaging"
)

// fuzzWorld has a topic t with a subscription s and a schema.
func fuzzWorld(f *testing.F) *world {
	f.Helper()
	w := newWorld(f, messaging.Options{Limits: messaging.Limits{Wait: 1, Topics: 1000}})
	w.Checked = false
	w.Ready("t", 2)
	w.Groups()
	w.Call("POST", "/admin/v2/schemas/public/default/t/schema", `{"type":"STRING","schema":""}`).Want(200)
	return w
}

func FuzzRouter(f *testing.F) {
	for _, path := range []string{
		"/admin/v2/persistent/public/default/t/subscription/s/position/1", "/admin/v2/tenants/public", "/admin/v2/namespaces/public/default/retention",
		"/rest-stream/admin/v1/topics?namespace=x", "/admin//v2/", "/admin/v2/persistent/public/default/t/ledger/1/entry/-1", "/admin/v2/%zz",
		"/admin/v2/schemas/public/default/t/schema/99999999999999999999",
		"/rest-stream/admin/v1/groups?tenant=%ff", "/rest-stream/admin/v1/groups/g%00/offsets?tenant=x", "/rest-stream/admin/v1/groups/g",
	} {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "BREW"} {
			f.Add(method, path, []byte("{}"))
		}
	}
	w := fuzzWorld(f)
	f.Fuzz(func(t *testing.T, method, path string, body []byte) {
		u, err := url.ParseRequestURI(path)
		if err != nil || strings.HasPrefix(u.Path, "/admin/rest/") {
			return // not a request, or not one of this surface
		}
		w.T = t
		w.Attempt(method, u, http.Header{}, body)
	})
}

func FuzzBodies(f *testing.F) {
	targets := []struct{ method, path string }{
		{"PUT", "/admin/v2/tenants/x"},
		{"PUT", "/admin/v2/namespaces/public/x"},
		{"POST", "/admin/v2/namespaces/public/default/retention"},
		{"POST", "/admin/v2/namespaces/public/default/backlogQuota"},
		{"POST", "/admin/v2/namespaces/public/default/autoTopicCreation"},
		{"POST", "/admin/v2/namespaces/public/default/permissions/r"},
		{"PUT", "/admin/v2/persistent/public/default/x/partitions"},
		{"POST", "/admin/v2/persistent/public/default/t/partitions"},
		{"PUT", "/admin/v2/persistent/public/default/t/properties"},
		{"PUT", "/admin/v2/persistent/public/default/t/subscription/x"},
		{"POST", "/admin/v2/persistent/public/default/t/subscription/s/resetcursor"},
		{"PUT", "/admin/v2/persistent/public/default/t/subscription/s/properties"},
		{"POST", "/admin/v2/schemas/public/default/x/schema"},
		{"POST", "/admin/v2/schemas/public/default/t/compatibility"},
		{"POST", "/rest-stream/admin/v1/topics"},
		{"PUT", "/rest-stream/admin/v1/groups/g/offsets"},
	}
	for i := range targets {
		for _, body := range []string{
			``, `{}`, `[]`, `null`, `"earliest"`, `5`, `{"messages":[{"payload":"eA==","properties":{"a":"b"}}]}`, `{"timeoutMillis":0,"maxMessages":5}`,
			`CAgQADAA`, `["8:0:-1:0"]`, `{"messageId":"8:0:0:0","delayMillis":1,"ackTimeoutMillis":1000}`,
			`{"ledgerId":-1,"entryId":-1,"deadLetterPolicy":{"maxRedeliverCount":3,"deadLetterTopic":"d"}}`,
			`{"type":"AVRO","schema":"{\"type\":\"record\",\"name\":\"R\",\"fields\":[]}"}`, `{"topic_name":"a.b.c","partitions_count":2}`,
			`{"type":"KEY_VALUE","schema":"{\"key\":\"\",\"value\":{}}","properties":{"key.schema.type":"STRING","value.schema.type":"JSON"}}`,
			`{"retentionTimeInMinutes":-1,"retentionSizeInMB":-1}`, `{"adminRoles":["x"],"allowedClusters":["prod"]}`, `{"partitions":2}`,
			`{"offsets":[{"topic_name":"t","position":"latest"},{"topic_name":"t","partition_id":1,"timestamp":9223372036854775807}]}`,
		} {
			f.Add(uint8(i), []byte(body))
		}
	}
	w := fuzzWorld(f)
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		w.T = t
		target := targets[int(which)%len(targets)]
		w.Attempt(target.method, &url.URL{Path: target.path}, http.Header{}, body)
	})
}
