package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"freshet/internal/identity"
	"freshet/test/tally"
	"freshet/test/testserver"
)

const quotaSettings = `
quotas:
  clusters: %d
  instances: 1
  topics: 5
  subjects: 2
  storedBytes: 20Ki
  organizations:
    - {name: flood, requestsPerSecond: 20}
`

// member is an administrator of an organization.
type member struct {
	t                   *testing.T
	server              *testserver.Server
	organization        string
	token, clusterToken string // for the resource API, and for the organization's clusters
}

func newMember(t *testing.T, server *testserver.Server, organization string) *member {
	t.Helper()
	m := &member{t: t, server: server, organization: organization}
	account := m.path("serviceaccounts")
	must(t, server, 201, "POST", account,
		`{"metadata":{"name":"boss","annotations":{"annotations.cloud.vendor.io/service-account-role":"admin"}}}`)
	requestToken := func(audiences string) (token string) {
		eventually(t, "a token for "+organization, func() bool {
			status, text := call(t, server, "POST", account+"/boss/token",
				`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{`+audiences+`}}`)
			var response struct{ Status struct{ Token string } }
			if status != 201 || json.Unmarshal([]byte(text), &response) != nil {
				return false
			}
			token = response.Status.Token
			return token != ""
		})
		return token
	}
	must(t, server, 201, "POST", m.path("messaginginstances"), `{"metadata":{"name":"i"},"spec":{}}`)
	m.token = requestToken("")
	m.clusterToken = requestToken(`"audiences":["` + identity.InstanceAudience(organization, "i") + `"]`)
	return m
}

func (m *member) path(rest string) string {
	return resources + "namespaces/" + m.organization + "/" + rest
}

// do makes a call as the member; a path with "CLUSTER:" in front is a path of that cluster.
func (m *member) do(method, path, body string) (*http.Response, string) {
	token := m.token
	if cluster, rest, ok := strings.Cut(path, ":"); ok {
		token, path = m.clusterToken, "/clusters/"+m.organization+"/"+cluster+rest
	}
	r, err := http.NewRequestWithContext(context.WithoutCancel(m.t.Context()), method, m.server.URL+path,
		strings.NewReader(body))
	if err != nil {
		m.t.Error(err)
		return &http.Response{}, ""
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		m.t.Error(err)
		return &http.Response{}, ""
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		m.t.Error(err)
	}
	return response, string(text)
}

// all makes n concurrent calls of attack, and some calls of meanwhile that must succeed. It
// returns how many calls got the status, and a response with another status.
func all(n int, status int, attack func(i int) (*http.Response, string),
	meanwhile func(i int),
) (got int, other string) {
	var count atomic.Int64
	var last atomic.Value
	last.Store("")
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if i%10 == 0 {
				meanwhile(i)
			}
			response, text := attack(i)
			if response.StatusCode == status {
				count.Add(1)
			} else {
				last.Store(strconv.Itoa(response.StatusCode) + " " + text)
			}
		})
	}
	wg.Wait()
	return int(count.Load()), last.Load().(string)
}

func clusterNamed(name string) string {
	return `{"metadata":{"name":"` + name + `"},"spec":{"instanceName":"i","location":"local","broker":{"replicas":1}}}`
}

// TestAttackOneOrganization lets one organization create, store and call as much as it can,
// while another organization continues to work.
func TestAttackOneOrganization(t *testing.T) {
	t.Parallel()
	server, file := start(t, fmt.Sprintf(quotaSettings, 3))
	acme, flood, globex := newMember(t, server, "acme"), newMember(t, server, "flood"), newMember(t, server, "globex")
	want := func(what, text string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%s: got %.400s, want it to contain %q", what, text, part)
			}
		}
	}
	if response, text := globex.do("POST", globex.path("messagingclusters"),
		clusterNamed("work")); response.StatusCode != 201 {
		t.Fatalf("creating a cluster: got %d %s, want 201", response.StatusCode, text)
	}
	const topics, messages = "/admin/v2/persistent/public/default/", "/admin/rest/topics/v1/public/default/"
	eventually(t, "a topic of the other organization", func() bool {
		response, _ := globex.do("PUT", "work:"+topics+"w", "")
		return response.StatusCode == 204
	})
	works := func(i int) {
		for _, c := range [][3]string{
			{"POST", "work:" + messages + "w/message", "x"},
			{"GET", globex.path("messagingclusters"), ""},
		} {
			if response, text := globex.do(c[0], c[1], c[2]); response.StatusCode >= 300 {
				t.Errorf("other organization, %d: %s %s: got %d %s", i, c[0], c[1], response.StatusCode, text)
			}
		}
	}
	successes, attempts := 0, 0
	attack := func(what string, n, status, limit int, f func(i int) (*http.Response, string)) string {
		t.Helper()
		made, refusal := all(n, status, f, works)
		attempts += n
		successes += max(0, made-limit)
		if made > limit {
			t.Errorf("%s: %d calls succeeded, want at most %d", what, made, limit)
		}
		return refusal
	}

	_, text := acme.do("POST", acme.path("messaginginstances"), `{"metadata":{"name":"second"},"spec":{}}`)
	want("a second instance", text, `"code":403`, `"reason":"Forbidden"`,
		"exceeded quota: organization acme uses 1 of 1 instances")
	text = attack("clusters", 40, 201, 3, func(i int) (*http.Response, string) {
		return acme.do("POST", acme.path("messagingclusters"), clusterNamed(fmt.Sprintf("c%d", i)))
	})
	want("a fourth cluster", text, `"code":403`, "exceeded quota: organization acme uses 3 of 3 clusters",
		"quotas.clusters")

	var clusters struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	_, text = acme.do("GET", acme.path("messagingclusters"), "")
	if err := json.Unmarshal([]byte(text), &clusters); err != nil || len(clusters.Items) != 3 {
		t.Fatalf("got %d clusters, %v, want 3", len(clusters.Items), err)
	}
	home := clusters.Items[0].Metadata.Name + ":"
	eventually(t, "a topic", func() bool {
		response, _ := acme.do("PUT", home+topics+"t", "")
		return response.StatusCode == 204
	})
	text = attack("topics", 30, 204, 4, func(i int) (*http.Response, string) {
		return acme.do("PUT", home+topics+fmt.Sprintf("t%d", i), "")
	})
	want("a sixth topic", text, `403 {"reason":"exceeded quota: organization acme uses 5 of 5 topics`)
	acme.do("PUT", home+topics+"t/subscription/s", "")
	text = attack("messages", 60, 201, 20, func(int) (*http.Response, string) {
		return acme.do("POST", home+messages+"t/message", strings.Repeat("x", 1<<10))
	})
	want("too many messages", text, `403 {"reason":"exceeded quota: organization acme uses `, " of 20480 storedBytes")
	text = attack("subjects", 30, 200, 2, func(i int) (*http.Response, string) {
		return acme.do("POST", home+"/stream/subjects/"+fmt.Sprintf("s%d-value/versions", i), `{"schema":"\"string\""}`)
	})
	want("a third subject", text,
		`403 {"error_code":40302,"message":"exceeded quota: organization acme uses 2 of 2 subjects`)

	began := time.Now()
	through, text := all(400, 200, func(int) (*http.Response, string) {
		response, text := flood.do("GET", flood.path("messagingclusters"), "")
		return response, "after " + response.Header.Get("Retry-After") + " " + text
	}, works)
	attempts += 400
	if most := 20 + int(20*time.Since(began).Seconds()) + 1; through > most {
		successes += through - most
		t.Errorf("flood: %d calls succeeded in %v, want at most %d", through, time.Since(began), most)
	}
	want("a flood", text, "429 after 1 ", `"code":429`, "organization flood is limited to 20 requestsPerSecond")
	tally.Attack(t, "exceed the quotas of an organization", attempts, successes)
	quotaIsReadable(t, server, acme, globex)

	if err := os.WriteFile(file, fmt.Appendf(nil, quotaSettings, 4), 0o600); err != nil {
		t.Fatal(err)
	}
	sendSIGHUP(t, server)
	eventually(t, "one more cluster after SIGHUP", func() bool {
		response, _ := acme.do("POST", acme.path("messagingclusters"), clusterNamed("one-more"))
		return response.StatusCode == 201
	})
}

// quotaIsReadable checks that members of the organization can read its limits and usage.
func quotaIsReadable(t *testing.T, server *testserver.Server, acme, globex *member) {
	t.Helper()
	const quotas = "/api/v1/namespaces/acme/resourcequotas"
	response, text := acme.do("GET", quotas+"/organization", "")
	var shown struct {
		Status struct{ Hard, Used map[string]string }
	}
	if err := json.Unmarshal([]byte(text), &shown); err != nil || response.StatusCode != 200 {
		t.Fatalf("quota: got %d %s, %v, want 200", response.StatusCode, text, err)
	}
	for name, used := range map[string]string{"clusters": "3", "instances": "1", "topics": "5", "subjects": "2"} {
		if shown.Status.Used[name] != used || shown.Status.Hard[name] != used {
			t.Errorf("%s: got %s of %s, want %s of %s", name, shown.Status.Used[name],
				shown.Status.Hard[name], used, used)
		}
	}
	if _, text := acme.do("GET", quotas, ""); strings.Count(text, `"name":"cluster.`) != 3 {
		t.Errorf("got %s, want also one for each cluster", text)
	}
	if response, text := globex.do("GET", quotas, ""); response.StatusCode != 403 {
		t.Errorf("another organization: got %d %s, want 403", response.StatusCode, text)
	}
	if response, text := acme.do("POST", quotas, `{"metadata":{"name":"more"}}`); response.StatusCode != 403 &&
		response.StatusCode != 405 {
		t.Errorf("writing a quota: got %d %s, want 403 or 405", response.StatusCode, text)
	}
	found := series(t, server)
	if n, _ := strconv.Atoi(found[`freshet_quota_refusals_total{organization="acme",resource="clusters"}`]); n != 37 {
		t.Errorf("metrics: got %d refusals of clusters, want 37", n)
	}
	if found[`freshet_quota_used{organization="acme",resource="topics"}`] != "5" {
		t.Errorf("metrics: got %s topics, want 5", found[`freshet_quota_used{organization="acme",resource="topics"}`])
	}
}
