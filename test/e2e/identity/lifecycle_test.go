package identity_test

import (
	"strings"
	"testing"
)

const (
	components = "MetadataReady=True(Deploy) StorageReady=True(Deploy) BrokerReady=True(Deploy) " +
		"ProxyReady=True(Deploy) "
	allReady = components + "AsRequested=True(AsRequested) Ready=True(AllConditionStatusTrue)"
)

func TestInstanceLives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	created := w.post("messaginginstances", object("prod", map[string]any{
		"availabilityMode": "zonal", "auth": map[string]any{"oauth2": map[string]any{"tokenLifetimeSeconds": 600}},
	})).want(201)
	if created.at("status.auth") != nil ||
		created.text("metadata.finalizers.0") != "messaginginstance.finalizers.cloud.vendor.io" {
		t.Errorf("created: %s, want no status.auth and finalizer messaginginstance.finalizers.cloud.vendor.io",
			created.body)
	}
	// Tokens can be requested immediately, with the lifetime of the instance.
	c := w.account("robot", true)
	r := w.do(call{method: "POST", path: "/oauth/token", as: "-", secret: true, body: map[string]string{
		"grant_type": "client_credentials", "client_id": c.ClientID, "client_secret": c.ClientSecret,
		"audience": w.audience("prod"),
	}}).want(200)
	if left, ok := r.at("expires_in").(float64); !ok || left < 595 || left > 600 {
		t.Errorf("token expires in %v, want 595 to 600", r.at("expires_in"))
	}
	r = w.eventuallyReady("messaginginstances/prod")
	if want := "SubscriptionReady=True(Created) ResourceServerReady=True(Created) ServiceAccountReady=True(Created) " +
		"Ready=True(AllConditionStatusTrue)"; r.conditions() != want {
		t.Errorf("conditions: %s, want %v", r.conditions(), want)
	}
	if r.text("status.auth.type") != "oauth2" || r.text("status.auth.oauth2.issuerURL") != w.server.URL ||
		r.text("status.auth.oauth2.audience") != w.audience("prod") {
		t.Errorf("status.auth: %s, want oauth2, %v and %v", r.body, w.server.URL, w.audience("prod"))
	}
	r = w.patch("messaginginstances/prod",
		map[string]any{"spec": map[string]any{"auth": map[string]any{
			"oauth2": map[string]any{"tokenLifetimeSeconds": 60},
		}}}).want(200)
	if r.at("metadata.generation") != 2.0 {
		t.Errorf("generation: %v, want 2", r.at("metadata.generation"))
	}
	w.eventually("messaginginstances/prod", "up to date", func(r reply) bool {
		return r.at("status.observedGeneration") == 2.0 && r.at("status.conditions.3.observedGeneration") == 2.0
	})
	w.delete("messaginginstances/prod").want(200, 202)
	// An instance that is being deleted gets no new tokens.
	w.do(call{method: "POST", path: "/oauth/token", as: "-", body: map[string]string{
		"grant_type": "client_credentials", "client_id": c.ClientID, "client_secret": c.ClientSecret,
		"audience": w.audience("prod"),
	}}).want(403)
	w.eventuallyGone("messaginginstances/prod")
}

func TestInstanceInAMissingPool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.post("messaginginstances",
		object("lost", map[string]any{"poolRef": map[string]any{"namespace": "default", "name": "moon"}})).want(201)
	r := w.eventually("messaginginstances/lost", "refused",
		func(r reply) bool { return strings.HasSuffix(r.conditions(), "Ready=False(PoolNotFound)") })
	if !strings.HasPrefix(r.conditions(), "SubscriptionReady=False") || r.at("status.auth") != nil {
		t.Errorf("status: %s", r.body)
	}
	w.delete("messaginginstances/lost").want(200, 202)
	w.eventuallyGone("messaginginstances/lost")
}

func TestClusterLives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// A cluster may be created before its instance; clients rely on the order of its conditions.
	w.post("messagingclusters",
		object("east", map[string]any{
			"instanceName": "prod", "location": "local",
			"broker": map[string]any{"replicas": 5},
		})).want(201)
	waiting := strings.ReplaceAll(components, "True", "False") + "Ready=False(InstanceNotFound)"
	w.eventually("messagingclusters/east", "waiting", func(r reply) bool { return r.conditions() == waiting })
	w.instance("prod")
	r := w.eventuallyReady("messagingclusters/east")
	notAll := strings.Replace(allReady, "AsRequested=True(AsRequested)", "AsRequested=False(PoolMemberLimits)", 1)
	if r.conditions() != notAll {
		t.Errorf("conditions: %s, want %v", r.conditions(), notAll)
	}
	// The status shows one replica, whatever number the spec requests.
	if r.at("spec.broker.replicas") != 5.0 || r.at("status.broker.replicas") != 1.0 ||
		r.at("status.broker.readyReplicas") != 1.0 || r.at("status.storage.readyReplicas") != 1.0 {
		t.Errorf("replicas: %s", r.body)
	}
	if r.text("metadata.ownerReferences.0.kind") != "MessagingInstance" ||
		r.at("metadata.ownerReferences.0.blockOwnerDeletion") != true {
		t.Errorf("owner: %s, want MessagingInstance with blockOwnerDeletion", r.body)
	}
	// The conditions first report the update as in progress and then as done.
	watch := w.watch("messagingclusters", "")
	watch.next()
	r = w.patch("messagingclusters/east", map[string]any{"spec": map[string]any{"displayName": "East"}}).want(200)
	if r.at("metadata.generation") != 2.0 || r.at("status.observedGeneration") != 1.0 {
		t.Errorf("directly after the change: %s, want generation 2 and observedGeneration 1", r.body)
	}
	w.eventually("messagingclusters/east", "up to date", func(r reply) bool {
		return r.at("status.observedGeneration") == 2.0 &&
			strings.HasSuffix(r.conditions(), "Ready=True(AllConditionStatusTrue)")
	})
	if !watch.saw("Updating") {
		t.Error("watch did not report the update")
	}
	w.delete("messagingclusters/east").want(200, 202)
	if !watch.saw("Deleting") {
		t.Error("watch did not report the deletion")
	}
	w.eventuallyGone("messagingclusters/east")
}

// saw reads events until one contains the reason.
func (s *watching) saw(reason string) bool {
	for s.lines.Scan() {
		if strings.Contains(s.lines.Text(), `"reason":"`+reason+`"`) {
			return true
		}
	}
	return false
}

func TestPartsComeUpOneByOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.instance("prod")
	watch := w.watch("messagingclusters", "")
	w.post("messagingclusters",
		object("east", map[string]any{"instanceName": "prod", "location": "local", "broker": map[string]any{}})).want(
		201)
	most := -1
	for watch.lines.Scan() {
		text := watch.lines.Text()
		ready := strings.Count(text, `"reason":"Deploy"`) - strings.Count(text, `"being set up"`)
		if !strings.Contains(text, `"reason":"Deploy"`) {
			continue
		}
		if ready < most || ready > most+1 && most >= 0 {
			t.Errorf("from %d to %d ready components in one step: %s", most, ready, text)
		}
		most = ready
		if strings.Contains(text, "AllConditionStatusTrue") {
			break
		}
	}
	if most != 4 {
		t.Errorf("got %d ready components in the end, want 4", most)
	}
}

func TestInstanceWithClusters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.instance("prod")
	w.cluster("a", "prod")
	w.cluster("b", "prod")
	for _, query := range []string{"", "?propagationPolicy=Background", "?propagationPolicy=Orphan"} {
		r := w.delete("messaginginstances/prod" + query).want(409)
		if r.text("reason") != "Conflict" || !strings.Contains(r.text("message"), "a, b") {
			t.Errorf("%s: %s, want Conflict and the clusters a, b", query, r.body)
		}
	}
	protect := func(path, value string) {
		t.Helper()
		annotations := map[string]any{"cloud.vendor.io/destroy-protected": value}
		w.patch(path, map[string]any{"metadata": map[string]any{"annotations": annotations}}).want(200)
	}
	protect("messagingclusters/b", "true")
	w.delete("messagingclusters/b").want(409)
	if r := w.delete("messaginginstances/prod?propagationPolicy=Foreground").want(409); !strings.Contains(
		r.text("message"), "protected: b") {
		t.Errorf("with a protected cluster: %s, want protected: b", r.body)
	}
	protect("messagingclusters/b", "false")
	protect("messaginginstances/prod", "true")
	w.delete("messaginginstances/prod?propagationPolicy=Foreground").want(409)
	protect("messaginginstances/prod", "false")
	w.delete("messaginginstances/prod?propagationPolicy=Foreground").want(200, 202)
	if r := w.post("messagingclusters",
		object("late", map[string]any{
			"instanceName": "prod", "location": "local",
			"broker": map[string]any{},
		})); r.status == 201 {
		// The instance was already deleted; then the cluster waits for a new one.
		w.get("messaginginstances/prod").want(404)
	}
	w.eventuallyGone("messagingclusters/a")
	w.eventuallyGone("messagingclusters/b")
	w.eventuallyGone("messaginginstances/prod")
}

func TestKeysDieWithTheirInstance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.account("robot", true)
	w.instance("prod")
	host := w.cluster("east", "prod")
	key, wide := w.plainKey("bound", "robot", "prod"), w.plainKey("wide", "robot", "")
	if got := w.onMessages(key, host); got != 201 {
		t.Fatalf("key: got %d, want 201", got)
	}
	w.delete("messaginginstances/prod?propagationPolicy=Foreground").want(200, 202)
	if got := w.onMessages(key, host); got == 201 {
		t.Error("key works after the instance's deletion was accepted")
	}
	w.eventuallyGone("messaginginstances/prod")
	w.get("apikeys/bound").want(404)
	w.get("apikeys/wide").want(200)
	// A new instance and cluster with the same names do not accept the old key.
	w.instance("prod")
	host = w.cluster("east", "prod")
	if got := w.onMessages(key, host); got != 401 {
		t.Errorf("key of the deleted instance: got %d, want 401", got)
	}
	if got := w.onMessages(wide, host); got != 201 {
		t.Errorf("key of the organization: got %d, want 201", got)
	}
}

func TestDataPlanesAreApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.instance("prod")
	east, west := w.cluster("east", "prod"), w.cluster("west", "prod")
	w.do(call{
		method: "POST", path: "/admin/rest/topics/v1/public/default/hello/message", host: east, body: "only east",
		kind: "application/octet-stream",
	}).want(201)
	w.do(call{method: "PUT", path: "/admin/v2/persistent/public/default/there", host: east}).want(204)
	if r := w.do(call{path: "/admin/v2/persistent/public/default", host: west}).want(200); strings.Contains(
		string(r.body), "there") {
		t.Errorf("cluster west lists topics of east: %s", r.body)
	}
	// A recreated cluster starts empty.
	w.delete("messagingclusters/east").want(200, 202)
	w.eventuallyGone("messagingclusters/east")
	w.do(call{path: "/admin/v2/persistent/public/default", host: east}).want(404)
	east = w.cluster("east", "prod")
	if r := w.do(call{path: "/admin/v2/persistent/public/default", host: east}).want(200); strings.Contains(
		string(r.body), "there") {
		t.Errorf("recreated cluster has topics of the deleted one: %s", r.body)
	}
}

func TestFinalizerTakenOffByHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.instance("prod")
	host := w.cluster("east", "prod")
	// Without a deletion, the finalizer is added again automatically.
	r := w.patch("messagingclusters/east", map[string]any{"metadata": map[string]any{"finalizers": []any{}}}).want(200)
	if r.text("metadata.finalizers.0") == "" {
		t.Errorf("finalizer could be removed without a deletion: %s", r.body)
	}
	// While a foreign finalizer delays the deletion, ours can be removed.
	w.patch("messagingclusters/east", map[string]any{"metadata": map[string]any{
		"finalizers": []any{"messagingcluster.finalizers.cloud.vendor.io", "example.org/hold"},
	}}).want(200)
	w.delete("messagingclusters/east").want(200, 202)
	w.eventually("messagingclusters/east", "held",
		func(r reply) bool { return r.text("metadata.finalizers.0") == "example.org/hold" })
	w.do(call{path: "/admin/v2/persistent/public/default", host: host}).want(404)
	w.patch("messagingclusters/east", map[string]any{"metadata": map[string]any{"finalizers": nil}}).want(200)
	w.eventuallyGone("messagingclusters/east")
}
