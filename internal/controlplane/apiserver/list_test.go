package apiserver_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"freshet/internal/controlplane/kinds/kindstest"
)

func (a *api) fill(k kind, n int) (names []string) {
	a.Helper()
	for i := range n {
		name := fmt.Sprintf("n%03d", i)
		a.post(k.plural, k.object(name, fmt.Sprintf(`"labels":{"parity":"%d","n":"%d"}`, i%2, i))).want(
			http.StatusCreated)
		names = append(names, name)
	}
	return names
}

func TestPages(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("RoleBinding")
	want := a.fill(k, 7)
	a.post(apiPath+"/namespaces/other/"+k.plural, k.object("theirs")).want(http.StatusCreated)
	for _, limit := range []int{1, 3, 7, 100} {
		var got []string
		token, version := "", ""
		for {
			page := a.get(fmt.Sprintf("%s?limit=%d&continue=%s", k.plural, limit, url.QueryEscape(token))).want(
				http.StatusOK)
			names := page.names()
			if len(names) > limit {
				t.Errorf("page with limit %d: got %d items", limit, len(names))
			}
			got = append(got, names...)
			if version != "" && page.version() != version {
				t.Errorf("version of a later page: got %s, want %s like the first", page.version(), version)
			}
			version = page.version()
			if token, _ = page.at("metadata.continue").(string); token == "" {
				break
			}
			page.has("metadata.remainingItemCount", fmt.Sprint(len(want)-len(got)))
			// Later pages show the state of the first page.
			a.post(k.plural, k.object("n999")).want(http.StatusCreated, http.StatusConflict)
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages with limit %d: got %q, want %q", limit, got, want)
		}
		a.delete(k.plural+"/n999").want(http.StatusOK, http.StatusNotFound)
	}
	a.get(k.plural+"?limit=0").want(http.StatusOK).has("metadata.continue", "<nil>")
	// The limit also applies with resourceVersion 0, for which the API machinery would ignore it.
	for _, q := range []string{"resourceVersion=0", "resourceVersion=0&resourceVersionMatch=NotOlderThan"} {
		if got := a.get(k.plural + "?limit=2&" + q).names(); !slices.Equal(got, want[:2]) {
			t.Errorf("limit 2 with resourceVersion 0: got %q, want the first two", got)
		}
	}
}

func TestContinueTokens(t *testing.T) {
	t.Parallel()
	a := start(t)
	a.fill(find("User"), 3)
	token := url.QueryEscape(fmt.Sprint(a.get("users?limit=1").at("metadata.continue")))
	for _, bad := range []string{
		"x", "%00", "e30", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MCwic3RhcnQiOiIuLi94In0",
		token[:len(token)-3], token + "AAAA",
	} {
		a.get("users?limit=1&continue=" + bad).want(http.StatusBadRequest).failure()
	}
	a.get("users?limit=1&resourceVersion=1&continue="+token).want(http.StatusBadRequest,
		http.StatusUnprocessableEntity).failure()
	a.get("users?limit=1&resourceVersion=0&continue="+token).want(http.StatusOK, http.StatusBadRequest)
	a.get("users?limit=1&resourceVersionMatch=Exact&continue=" + token).want(http.StatusUnprocessableEntity).failure()
	a.get("users?watch=true&timeoutSeconds=1&continue="+token).want(http.StatusBadRequest,
		http.StatusUnprocessableEntity).failure()
	for _, bad := range []string{"-1", "x", "1.5", "99999999999999999999"} {
		a.get("users?limit=" + bad).want(http.StatusBadRequest).failure()
		a.get("users?timeoutSeconds=" + bad).want(http.StatusBadRequest).failure()
	}
	a.get("users?timeoutSeconds=2147483648&watch=true").want(http.StatusBadRequest).failure()
}

// TestExpiredContinue checks that an expired continue token gets 410 with a new token that
// continues at the same position.
func TestExpiredContinue(t *testing.T) {
	t.Parallel()
	a := &api{t, kindstest.Start(t, kindstest.Options{CompactionInterval: 50 * time.Millisecond}), kindstest.AdminToken}
	k := find("User")
	want := a.fill(k, 4)
	first := a.get("users?limit=2").want(http.StatusOK)
	token := url.QueryEscape(fmt.Sprint(first.at("metadata.continue")))
	exact := first.version()

	var expired reply
	kindstest.Eventually(a, "the token expires", func() bool {
		a.patch("users/n000", mergePatch,
			fmt.Sprintf(`{"metadata":{"labels":{"t":"%d"}}}`, time.Now().UnixNano())).want(http.StatusOK)
		expired = a.get("users?limit=2&continue=" + token)
		return expired.code != http.StatusOK
	})
	expired.want(http.StatusGone).has("reason", "Expired")
	if status := expired.failure(); status.ListMeta.Continue == "" {
		t.Fatalf("response has no new token: %s", expired.body)
	} else {
		rest := a.get("users?limit=2&continue=" + url.QueryEscape(status.ListMeta.Continue))
		if got := append(first.names(), rest.names()...); !slices.Equal(got, want) {
			t.Errorf("list with the new token: got %q, want %q", got, want)
		}
		if rest.version() == exact {
			t.Error("list with the new token has the old version, want a newer one")
		}
	}
	kindstest.Eventually(a, "the version expires", func() bool {
		return a.get("users?resourceVersionMatch=Exact&resourceVersion="+exact).code == http.StatusGone
	})
}

func TestResourceVersionMatch(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("User")
	a.fill(k, 2)
	old := a.get("users").version()
	a.post("users", k.object("new")).want(http.StatusCreated)
	now := a.get("users").version()
	tests := map[string]struct {
		query string
		count int // -1 if it is rejected
	}{
		"newest":                       {"", 3},
		"any":                          {"resourceVersion=0", 3},
		"at least old":                 {"resourceVersion=" + old, 3},
		"exactly old":                  {"resourceVersionMatch=Exact&resourceVersion=" + old, 2},
		"exactly new":                  {"resourceVersionMatch=Exact&resourceVersion=" + now, 3},
		"exactly old, a page":          {"limit=1&resourceVersionMatch=Exact&resourceVersion=" + old, 1},
		"not older than old":           {"resourceVersionMatch=NotOlderThan&resourceVersion=" + old, 3},
		"not older than any":           {"resourceVersionMatch=NotOlderThan&resourceVersion=0", 3},
		"exactly any":                  {"resourceVersionMatch=Exact&resourceVersion=0", -1},
		"exactly, without saying what": {"resourceVersionMatch=Exact", -1},
		"another match":                {"resourceVersionMatch=Roughly&resourceVersion=" + old, -1},
	}
	for name, tc := range tests {
		res := a.get("users?" + tc.query)
		if tc.count < 0 {
			res.want(http.StatusUnprocessableEntity).failure()
			continue
		}
		if got := len(res.names()); got != tc.count {
			t.Errorf("%s: got %d users, want %d", name, got, tc.count)
		}
	}
	a.get("users?resourceVersionMatch=Exact&resourceVersion="+old).has("metadata.resourceVersion", old)
	a.get("users/new?resourceVersion=0").want(http.StatusOK)
	a.get("users/new?resourceVersion=" + now).want(http.StatusOK)
}

// TestFutureVersions checks that the server waits for a future version and then returns the
// error that client-go expects.
func TestFutureVersions(t *testing.T) {
	t.Parallel()
	a := start(t)
	a.fill(find("User"), 1)
	a.get("users?resourceVersion=9000000000").want(http.StatusGatewayTimeout).has("reason", "Timeout",
		"details.causes.0.reason", "ResourceVersionTooLarge")
}

func TestSelectors(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("User")
	a.fill(k, 6)
	a.patch("users/n005", mergePatch, k.change).want(http.StatusOK)
	tests := map[string]struct {
		query, labels, fields string
		want                  []string
	}{
		"equal":        {labels: "parity=0", want: []string{"n000", "n002", "n004"}},
		"equal twice":  {labels: "parity==1,n=3", want: []string{"n003"}},
		"unequal":      {labels: "parity!=0", want: []string{"n001", "n003", "n005"}},
		"in a set":     {labels: "n in (1, 2)", want: []string{"n001", "n002"}},
		"not in a set": {labels: "n notin (1,2,3,4)", want: []string{"n000", "n005"}},
		"there":        {labels: "n", want: []string{"n000", "n001", "n002", "n003", "n004", "n005"}},
		"not there":    {labels: "!n", want: []string{}},
		"greater":      {labels: "n>3", want: []string{"n004", "n005"}},
		"by name":      {fields: "metadata.name=n003", want: []string{"n003"}},
		"by other names": {
			fields: "metadata.name!=n003,metadata.name!=n004", labels: "n>1",
			want: []string{"n002", "n005"},
		},
		"by field":     {fields: "spec.email=eve@example.com", want: []string{"n005"}},
		"by namespace": {fields: "metadata.namespace=acme", labels: "n=1", want: []string{"n001"}},
		"elsewhere":    {fields: "metadata.namespace=other", want: []string{}},
		"in pages":     {query: "limit=2&", labels: "parity=1", want: []string{"n001", "n003"}},
	}
	for name, tc := range tests {
		q := tc.query + "labelSelector=" + url.QueryEscape(tc.labels) + "&fieldSelector=" + url.QueryEscape(tc.fields)
		for _, version := range []string{"", "&resourceVersion=0"} {
			if got := a.get("users?" + q + version).names(); !slices.Equal(got, tc.want) {
				t.Errorf("%s%s: got %q, want %q", name, version, got, tc.want)
			}
		}
	}
	for _, bad := range []string{"!!", "a in (", "a===b", "bad key!=x", "a=b c", "n>x", "=", "-a=b"} {
		a.get("users?labelSelector=" + url.QueryEscape(bad)).want(http.StatusBadRequest).failure()
	}
	for _, bad := range []string{"metadata.nope=x", "a", "spec=x", "status.conditions=x", "metadata.labels.n=1"} {
		a.get("users?fieldSelector=" + url.QueryEscape(bad)).want(http.StatusBadRequest).failure()
		a.get("users?watch=true&fieldSelector=" + url.QueryEscape(bad)).want(http.StatusBadRequest).failure()
	}
}

// TestSelectableFields checks the field selectors of every kind.
func TestSelectableFields(t *testing.T) {
	t.Parallel()
	a := start(t)
	for name, fields := range map[string]map[string]string{
		"ServiceAccountBinding": {"spec.serviceAccountName": "robot"},
		"User":                  {"spec.email": "ada@example.com"},
		"MessagingInstance":     {"spec.type": "standard"},
		"MessagingCluster":      {"spec.instanceName": "i", "spec.location": "local"},
		"APIKey":                {"spec.instanceName": "i", "spec.serviceAccountName": "robot"},
		"RoleBinding":           {"spec.roleRef.name": "org-readonly"},
		"ServiceAccount":        {},
	} {
		k := find(name)
		a.post(k.plural, k.object("one")).want(http.StatusCreated)
		fields["metadata.name"], fields["metadata.namespace"] = "one", "acme"
		for field, value := range fields {
			if got := a.get(k.plural + "?fieldSelector=" + url.QueryEscape(field+"="+value)).names(); !slices.Equal(got,
				[]string{"one"}) {
				t.Errorf("%s with %s=%s: got %q, want one", k.plural, field, value, got)
			}
			if got := a.get(k.plural + "?fieldSelector=" + url.QueryEscape(field+"=other")).names(); len(got) != 0 {
				t.Errorf("%s with %s=other: got %q, want none", k.plural, field, got)
			}
		}
	}
}
