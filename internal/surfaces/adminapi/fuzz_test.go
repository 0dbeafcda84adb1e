package adminapi_test

import (
	"net/url"
	"strings"
	"testing"

	"freshet/internal/surfaces/brokerhttp/brokertest"
)

func FuzzRouter(f *testing.F) {
	ofMessages := func(_ string, u *url.URL) bool { return strings.HasPrefix(u.Path, "/admin/rest/") }
	brokertest.FuzzRouter(f, ofMessages,
		"/admin/v2/persistent/public/default/t/subscription/s/position/1", "/admin/v2/tenants/public",
		"/admin/v2/namespaces/public/default/retention",
		"/rest-stream/admin/v1/topics?namespace=x", "/admin//v2/",
		"/admin/v2/persistent/public/default/t/ledger/1/entry/-1", "/admin/v2/%zz",
		"/admin/v2/schemas/public/default/t/schema/99999999999999999999",
		"/rest-stream/admin/v1/groups?tenant=%ff", "/rest-stream/admin/v1/groups/g%00/offsets?tenant=x",
		"/rest-stream/admin/v1/groups/g")
}

func FuzzBodies(f *testing.F) {
	brokertest.FuzzBodies(f,
		"PUT /admin/v2/tenants/x",
		"PUT /admin/v2/namespaces/public/x",
		"POST /admin/v2/namespaces/public/default/retention",
		"POST /admin/v2/namespaces/public/default/backlogQuota",
		"POST /admin/v2/namespaces/public/default/autoTopicCreation",
		"POST /admin/v2/namespaces/public/default/permissions/r",
		"PUT /admin/v2/persistent/public/default/x/partitions",
		"POST /admin/v2/persistent/public/default/t/partitions",
		"PUT /admin/v2/persistent/public/default/t/properties",
		"PUT /admin/v2/persistent/public/default/t/subscription/x",
		"POST /admin/v2/persistent/public/default/t/subscription/s/resetcursor",
		"PUT /admin/v2/persistent/public/default/t/subscription/s/properties",
		"PUT /admin/v2/persistent/public/default/t/subscription/s/filter",
		"POST /admin/v2/schemas/public/default/x/schema",
		"POST /admin/v2/schemas/public/default/t/compatibility",
		"POST /rest-stream/admin/v1/topics",
		"PUT /rest-stream/admin/v1/groups/g/offsets",
	)
}
