package apiserver_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/internal/controlplane/kinds/kindstest"
)

// target is the server of a fuzz target.
type target struct {
	handler http.Handler
}

func newTarget(f *testing.F) target {
	f.Helper()
	return target{kindstest.Start(f, kindstest.Options{}).Handler()}
}

// watchTimeout bounds a call that would not end, such as a watch.
const watchTimeout = 50 * time.Millisecond

// send makes a call and fails the test if the response is a server error or not a Status.
func (g target) send(t *testing.T, method, path, contentType string, body []byte) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), method, "/", bytes.NewReader(body))
	parsed, err := url.Parse(path)
	if err != nil {
		t.Skip("no path")
	}
	request.URL, request.RequestURI = parsed, path
	request.Header.Set("Authorization", "Bearer "+kindstest.AdminToken)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	mayBlock := strings.Contains(path, "watch")
	if mayBlock {
		ctx, cancel := context.WithTimeout(request.Context(), watchTimeout)
		defer cancel()
		request = request.WithContext(ctx)
	}
	recorder := httptest.NewRecorder()
	g.handler.ServeHTTP(closeNotifier{recorder, request.Context()}, request)
	g.checkResponse(t, request, recorder, mayBlock)
	return recorder
}

func (target) checkResponse(t *testing.T, request *http.Request, answer *httptest.ResponseRecorder, mayBlock bool) {
	t.Helper()
	if answer.Code < http.StatusBadRequest {
		return
	}
	var status metav1.Status
	err := json.Unmarshal(answer.Body.Bytes(), &status)
	switch {
	case mayBlock && request.Context().Err() != nil:
	case answer.Code == http.StatusGatewayTimeout && strings.Contains(status.Message, "Too large resource version"):
		// client-go expects this for a future resource version.
	case answer.Code >= http.StatusInternalServerError:
		t.Errorf("%s %s: got %d: %s", request.Method, request.URL, answer.Code, answer.Body)
	case err != nil || status.Kind != "Status" || int(status.Code) != answer.Code:
		t.Errorf("%s %s: got %d without a Status: %s", request.Method, request.URL, answer.Code, answer.Body)
	}
}

// closeNotifier adds the http.CloseNotifier that watches need.
type closeNotifier struct {
	*httptest.ResponseRecorder
	ctx context.Context //nolint:containedctx // the request's own
}

// CloseNotify implements http.CloseNotifier.
func (c closeNotifier) CloseNotify() <-chan bool {
	closed := make(chan bool, 1)
	go func() { <-c.ctx.Done(); closed <- true }()
	return closed
}

// ensure creates an object unless it exists, and returns its path.
func (g target) ensure(t *testing.T, k kind) string {
	t.Helper()
	g.send(t, http.MethodPost, acme+"/"+k.plural, jsonType, []byte(k.object("one", `"labels":{"a":"b"}`)))
	return acme + "/" + k.plural + "/one"
}

// readable checks that an object can be read in every format.
func (g target) readable(t *testing.T, item string) {
	t.Helper()
	for _, accept := range []string{jsonType, yamlType, protobufType, tableAccept} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, item, http.NoBody)
		request.Header.Set("Authorization", "Bearer "+kindstest.AdminToken)
		request.Header.Set("Accept", accept)
		recorder := httptest.NewRecorder()
		g.handler.ServeHTTP(recorder, request)
		if recorder.Code != http.StatusOK && recorder.Code != http.StatusNotFound {
			t.Errorf("%s as %s: got %d: %s", item, accept, recorder.Code, recorder.Body)
		}
	}
}

func FuzzSelectors(f *testing.F) {
	g := newTarget(f)
	for _, seed := range []string{
		"", "a=b", "a!=b", "a in (b,c)", "!a", "a>1", "a notin ()", "!!", "a in (", "=", ",,", "a=b,", "(((",
		"a\x00=b", "\xff=\xff",
		"metadata.name=x", "metadata.name!=x,spec.email=y", "spec.email=\\,\\=", "spec.email=\\", "metadata.nope=x",
		"spec.roleRef.name==",
		strings.Repeat("a,", 1000), strings.Repeat("x", 5000) + "=y", "a in (" + strings.Repeat("b,", 2000) + ")",
	} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, labels, fields string) {
		query := "labelSelector=" + url.QueryEscape(labels) + "&fieldSelector=" + url.QueryEscape(fields)
		g.send(t, http.MethodGet, acme+"/users?"+query, "", nil)
		g.send(t, http.MethodGet, acme+"/rolebindings?limit=1&resourceVersion=0&"+query, "", nil)
		g.send(t, http.MethodDelete, acme+"/users?dryRun=All&"+query, "", nil)
	})
}

func FuzzContinueTokens(f *testing.F) {
	g := newTarget(f)
	for _, seed := range []string{
		"", "x", "{}", "null", "[]", `{"v":"meta.k8s.io/v1","rv":1,"start":"/one\u0000"}`,
		`{"v":"meta.k8s.io/v1","rv":-1,"start":"x"}`,
		`{"v":"meta.k8s.io/v1","rv":0,"start":"../x"}`, `{"v":"meta.k8s.io/v1","rv":5,"start":"../../other/users/x"}`,
		`{"v":"meta.k8s.io/v1","rv":-2,"start":"x"}`, `{"v":"meta.k8s.io/v1","rv":1e99}`,
		`{"v":"v2","rv":5,"start":"x"}`, `{"v":"meta.k8s.io/v1","rv":2,"start":""}`, "\x00", "\xff\xfe",
		strings.Repeat("A", 70000),
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, token string, encode bool) {
		if encode {
			if number := regexp.MustCompile(`"rv":[0-9]{3}`); number.MatchString(token) {
				t.Skip("the server waits for future resource versions")
			}
			token = base64.RawURLEncoding.EncodeToString([]byte(token))
		}
		for _, query := range []string{"?limit=1&continue=", "?continue=", "?labelSelector=a&limit=500&continue="} {
			g.send(t, http.MethodGet, acme+"/users"+query+url.QueryEscape(token), "", nil)
		}
	})
}

func FuzzQueries(f *testing.F) {
	g := newTarget(f)
	for _, seed := range []string{
		"", "watch=true", "watch=1&resourceVersion=0", "watch=true&resourceVersion=1&allowWatchBookmarks=true",
		"resourceVersion=abc", "resourceVersion=-0",
		"limit=9223372036854775807", "limit=-1", "timeoutSeconds=0", "timeoutSeconds=9223372036854775807&watch=true",
		"pretty=true", "pretty=%00", "dryRun=All&dryRun=All",
		"dryRun=", "fieldManager=%00", "fieldManager=" + strings.Repeat("m", 129), "force=true", "force=x",
		"fieldValidation=Strict", "fieldValidation=x",
		"gracePeriodSeconds=-1", "gracePeriodSeconds=x", "gracePeriodSeconds=9223372036854775807",
		"propagationPolicy=Orphan&orphanDependents=true", "propagationPolicy=x",
		"resourceVersionMatch=Exact", "resourceVersionMatch=NotOlderThan&resourceVersion=0",
		"sendInitialEvents=true&watch=true&resourceVersionMatch=NotOlderThan",
		"includeObject=x", "%zz", ";", "a;b", "&&&", "=", "%", "continue=%2e%2e%2f", "shardSelector=x",
		"ignoreStoreReadErrorWithClusterBreakingPotential=true",
		"labelSelector=a&labelSelector=%21%21", "limit=1&limit=x", strings.Repeat("a=b&", 3000),
	} {
		f.Add(seed, uint8(0))
		f.Add(seed, uint8(3))
	}
	methods := []string{
		http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodHead, http.MethodOptions, "BREW",
	}
	k := find("User")
	f.Fuzz(func(t *testing.T, query string, choice uint8) {
		item := g.ensure(t, k)
		method := methods[int(choice)%len(methods)]
		var body []byte
		contentType := jsonType
		switch method {
		case http.MethodPost, http.MethodPut:
			body = []byte(k.object("one"))
		case http.MethodPatch:
			contentType, body = mergePatch, []byte(`{}`)
		}
		if method == http.MethodHead || method == http.MethodOptions || method == "BREW" {
			t.Skip("the response has no body")
		}
		for _, path := range []string{
			item, item + "/status", acme + "/users", apiPath + "/users",
			apiPath + "/watch/namespaces/acme/users/one", "/openapi/v2", "/apis",
		} {
			g.sendQuery(t, method, path, query, contentType, body)
		}
		g.readable(t, item)
	})
}

// sendQuery sends a query unchanged, even if it is malformed.
func (g target) sendQuery(t *testing.T, method, path, query, contentType string, body []byte) {
	t.Helper()
	ctx := t.Context()
	// Only a read can run forever, and escapes may hide that it does.
	mayBlock := method == http.MethodGet && (strings.Contains(path+query, "watch") || strings.Contains(query, "%"))
	if mayBlock {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, watchTimeout)
		defer cancel()
	}
	request := httptest.NewRequestWithContext(ctx, method, path, bytes.NewReader(body))
	request.URL.RawQuery = query
	request.Header.Set("Authorization", "Bearer "+kindstest.AdminToken)
	request.Header.Set("Content-Type", contentType)
	recorder := httptest.NewRecorder()
	if g.serve(closeNotifier{recorder, ctx}, request) {
		g.checkResponse(t, request, recorder, mayBlock)
	}
}

// serve reports whether the request was served before its client left.
func (g target) serve(w http.ResponseWriter, request *http.Request) (answered bool) {
	defer func() {
		reason := recover()
		if err, ok := reason.(error); reason != nil &&
			(!ok || !errors.Is(err, http.ErrAbortHandler) || request.Context().Err() == nil) {
			panic(reason)
		}
	}()
	g.handler.ServeHTTP(w, request)
	return true
}

func FuzzPatches(f *testing.F) {
	g := newTarget(f)
	types := []string{mergePatch, jsonPatch, strategic, applyPatch}
	for _, seed := range []string{
		"", "{", "null", "[]", "{}", "1", `"x"`, "[null]", "[{}]", `{"spec":1}`, `{"spec":null}`, `{"metadata":null}`,
		`{"metadata":{"labels":1}}`, `{"kind":"Other"}`,
		`{"metadata":{"resourceVersion":"abc"}}`, `{"metadata":{"creationTimestamp":"x"}}`,
		`{"metadata":{"managedFields":[{"manager":"\u0000","operation":"Apply","fieldsV1":{"f:x":1}}]}}`,
		`{"metadata":{"managedFields":[{}]}}`, `{"$patch":"bogus"}`, `{"metadata":{"$setElementOrder/finalizers":1}}`,
		`{"status":{"conditions":[{"type":{}}]}}`,
		`{"metadata":{"ownerReferences":[{"uid":{}}]}}`, `{"metadata":{"finalizers":["x","x"]}}`,
		`{"metadata":{"annotations":{"a":"` + strings.Repeat("x", 300000) + `"}}}`,
		`[{"op":"add","path":"/metadata/labels/-","value":1}]`, `[{"op":"copy","from":"","path":"/spec"}]`,
		`[{"op":"move","from":"/metadata","path":"/metadata/x"}]`,
		`[{"op":"test","path":"/spec/email","value":1}]`, `[{"op":"remove","path":""}]`,
		`[{"op":"replace","path":"","value":null}]`,
		`[{"op":"add","path":"/metadata/finalizers/99999999999","value":"x"}]`,
		`{"apiVersion":"cloud.vendor.io/v1alpha1","kind":"User","metadata":{"name":"one"},"spec":{"email":"a@b.c"}}`,
		`{"apiVersion":"cloud.vendor.io/v1alpha1","kind":"User","metadata":{"name":"one"},"spec":{"surplus":1}}`,
		`{"apiVersion":"cloud.vendor.io/v1alpha1","kind":"User",` +
			`"metadata":{"ownerReferences":[{"uid":"1"},{"uid":"1"}]}}`,
		`{"apiVersion":"cloud.vendor.io/v1alpha1","kind":"MessagingCluster",` +
			`"spec":{"broker":{"resources":{"cpu":"x"}}}}`,
		"a: &a [*a]", "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]", "- a\n- b", "? x", "\x00", "\xff", "!!binary x",
		"apiVersion: cloud.vendor.io/v1alpha1\nkind: User\nspec: {email: y}",
		strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000), strings.Repeat("[", 11000),
	} {
		for i := range types {
			f.Add([]byte(seed), uint8(i), uint8(2+2*(i%2))) // users and clusters
		}
	}
	f.Fuzz(func(t *testing.T, patch []byte, contentType, which uint8) {
		item := g.ensure(t, kinds[int(which)%len(kinds)])
		g.send(t, http.MethodPatch, item+"?fieldManager=fuzz", types[int(contentType)%len(types)], patch)
		g.send(t, http.MethodPatch, item+"/status?fieldManager=fuzz", types[int(contentType)%len(types)], patch)
		g.readable(t, item)
	})
}

func FuzzBodies(f *testing.F) {
	g := newTarget(f)
	mediaTypes := []string{jsonType, yamlType, protobufType, "", "application/x-www-form-urlencoded"}
	for _, k := range kinds {
		f.Add([]byte(k.object("one")), uint8(0), uint8(0))
	}
	for _, seed := range []string{
		"", "{", "null", "[]", "{}", "1", `{"metadata":{"name":"x"}}`, `{"metadata":{"name":1}}`,
		`{"metadata":{"name":"x","labels":{"a":1}}}`, `{"metadata":{"name":"one","resourceVersion":"x"}}`,
		`{"metadata":{"name":"one","creationTimestamp":"x"}}`,
		`{"metadata":{"name":"one","managedFields":[{"manager":"x","operation":"Apply","fieldsV1":{"f:spec":[]}}]}}`,
		`{"metadata":{"name":"one","deletionTimestamp":"2020-01-01T00:00:00Z","deletionGracePeriodSeconds":-1}}`,
		`{"metadata":{"name":"one","finalizers":[""]}}`,
		`{"metadata":{"name":"one","ownerReferences":[{"apiVersion":"/","kind":"x","name":"y","uid":"z"}]}}`,
		`{"metadata":{"generateName":"` + strings.Repeat("x", 300) + `"}}`,
		`{"kind":"DeleteOptions","gracePeriodSeconds":-1}`,
		`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":"x"}}`,
		`{"propagationPolicy":"x"}`,
		"metadata:\n  name: one\n", "metadata: {name: y}", "a: &a [*a]", "%YAML 9.9\n---\n", "---\n---\n", "!!map x",
		"\t", "k8s\x00", "k8s\x00\n\x01\x02", "\x00\xff",
		"k8s\x00\n\x20\n\x18cloud.vendor.io/v1alpha1\x12\x04User\x12\x05\n\x03\n\x01\xff",
		strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000), strings.Repeat("- ", 5000),
		`{"metadata":{"name":"one"},"spec":{"broker":{"resources":{"cpu":"1e999999999","memory":"` +
			strings.Repeat("9", 5000) + `"}}}}`,
	} {
		for i := range mediaTypes {
			f.Add([]byte(seed), uint8(i), uint8(4-2*(i%2))) // clusters and users
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, mediaType, which uint8) {
		k := kinds[int(which)%len(kinds)]
		item := g.ensure(t, k)
		contentType := mediaTypes[int(mediaType)%len(mediaTypes)]
		g.send(t, http.MethodPost, acme+"/"+k.plural, contentType, body)
		g.send(t, http.MethodPost, item, contentType, body)
		g.send(t, http.MethodPut, item, contentType, body)
		g.send(t, http.MethodPut, item+"/status", contentType, body)
		g.send(t, http.MethodDelete, item, contentType, body)
		g.readable(t, item)
		g.readable(t, acme+"/"+k.plural+"?limit=5")
	})
}
