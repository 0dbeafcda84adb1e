package resources_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"freshet.dev/client"
	"freshet.dev/client/resources"
)

// connect returns a client of a server with this handler.
func connect(t *testing.T, handler http.HandlerFunc) *resources.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	conn, err := client.New(client.Config{BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return resources.New(conn)
}

func account(name, version, ready string) string {
	return fmt.Sprintf(`{"kind": "ServiceAccount", "apiVersion": "cloud.vendor.io/v1alpha1",
		"metadata": {"name": %q, "namespace": "acme", "resourceVersion": %q},
		"status": {"conditions": [{"type": "Ready", "status": %q}]}}`, name, version, ready)
}

func event(kind, object string) string {
	return fmt.Sprintf(`{"type": %q, "object": %s}`, kind, object)
}

var ci = resources.Ref{Kind: resources.ServiceAccounts, Organization: "acme", Name: "ci"}

func TestListFollowsPages(t *testing.T) {
	t.Parallel()
	var queries []url.Values
	r := connect(t, func(w http.ResponseWriter, request *http.Request) {
		queries = append(queries, request.URL.Query())
		if request.URL.Query().Get("continue") == "" {
			_, _ = io.WriteString(w, `{"metadata": {"continue": "more"}, "items": [{"metadata": {"name": "a"}}]}`)
			return
		}
		_, _ = io.WriteString(w,
			`{"metadata": {}, "items": [{"metadata": {"name": "b"}, "spec": {"big": 9007199254740993}}]}`)
	})
	list, err := r.List(t.Context(), resources.ServiceAccounts, "acme",
		resources.ListOptions{LabelSelector: "a=b", PageSize: 1})
	if err != nil || len(list) != 2 || list[1].Name() != "b" || list[0].Kind() != "ServiceAccount" {
		t.Fatalf("got %v, %v; want a and b with their kind", list, err)
	}
	if text, err := json.Marshal(list[1].Field("spec", "big")); err != nil || string(text) != "9007199254740993" {
		t.Errorf("large number: got %s, %v; want 9007199254740993", text, err)
	}
	if len(queries) != 2 || queries[1].Get("limit") != "1" || queries[1].Get("labelSelector") != "a=b" ||
		queries[1].Get("continue") != "more" {
		t.Errorf("queries: got %v, want two pages with the same selector", queries)
	}
}

func TestWarningsAreForwarded(t *testing.T) {
	t.Parallel()
	r := connect(t, func(w http.ResponseWriter, request *http.Request) {
		if got := request.URL.Query().Get("fieldValidation"); got != "Strict" {
			t.Errorf("fieldValidation %q, want Strict", got)
		}
		w.Header().Add("Warning", `299 - "say \"acme\" again"`)
		w.Header().Add("Warning", "nonsense")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, account("ci", "1", "False"))
	})
	var warnings []string
	r.Warn = func(text string) { warnings = append(warnings, text) }
	if _, err := r.Create(t.Context(), resources.ServiceAccounts, "acme", map[string]any{},
		resources.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if strings.Join(warnings, "|") != `say "acme" again` {
		t.Errorf("warnings: got %q, want one", warnings)
	}
}

// TestWaitMissesNoChange: Wait misses no change between its read and its watch, because the watch begins at the
// resource version of the read.
func TestWaitMissesNoChange(t *testing.T) {
	t.Parallel()
	r := connect(t, func(w http.ResponseWriter, request *http.Request) {
		query := request.URL.Query()
		switch {
		case query.Get("watch") == "":
			_, _ = io.WriteString(w, account("ci", "7", "False"))
		case query.Get("resourceVersion") != "7" || query.Get("fieldSelector") != "metadata.name=ci":
			t.Errorf("watch with %v, want ci from version 7 on", query)
			w.WriteHeader(http.StatusBadRequest)
		default:
			_, _ = io.WriteString(w, event("MODIFIED", account("ci", "8", "Unknown"))+
				event("DELETED", account("ci", "9", "True")))
		}
	})
	var seen []string
	object, err := r.Wait(t.Context(), ci, func(o resources.Object) (bool, error) {
		seen = append(seen, o.Condition("ready").Status)
		return o == nil, nil
	})
	if err != nil || object != nil || strings.Join(seen, ",") != "False,Unknown," {
		t.Errorf("got %v, %v after %q; want no object after its deletion", object, err, seen)
	}
}

// TestWaitReadsAgain: Wait reads the object again when its watch ends, breaks, or has expired.
func TestWaitReadsAgain(t *testing.T) {
	t.Parallel()
	var reads atomic.Int32
	r := connect(t, func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Query().Get("watch") == "" {
			ready := "False"
			if reads.Add(1) == 4 {
				ready = "True"
			}
			_, _ = io.WriteString(w, account("ci", "7", ready))
			return
		}
		switch reads.Load() {
		case 1: // ends
		case 2:
			_, _ = io.WriteString(w, event("ERROR", `{"code": 410, "reason": "Expired", "message": "too old"}`))
		case 3:
			panic(http.ErrAbortHandler)
		}
	})
	object, err := r.Wait(t.Context(), ci,
		func(o resources.Object) (bool, error) { return o.Condition("Ready").Status == "True", nil })
	if err != nil || object.Name() != "ci" || reads.Load() != 4 {
		t.Errorf("got %v, %v after %d reads; want ci after 4", object, err, reads.Load())
	}
}

func TestWaitEndsWithTheContext(t *testing.T) {
	t.Parallel()
	r := connect(t, func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Query().Get("watch") == "" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush() // if it fails, the test fails
		<-request.Context().Done()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := r.Wait(ctx, ci, func(o resources.Object) (bool, error) { return o != nil, nil }); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("got %v, want DeadlineExceeded", err)
	}
}

// TestWatchContinuesAfterABrokenConnection ends connections, and compacts the version of one of them:
// the objects that did not change meanwhile are not repeated.
func TestWatchContinuesAfterABrokenConnection(t *testing.T) {
	t.Parallel()
	var requests []string
	list := func(version string, items ...string) string {
		return `{"metadata": {"resourceVersion": "` + version + `"}, "items": [` + strings.Join(items, ",") + `]}`
	}
	r := connect(t, func(w http.ResponseWriter, request *http.Request) {
		query := request.URL.Query()
		requests = append(requests, cmp.Or(query.Get("resourceVersion"), "list"))
		switch len(requests) {
		case 1:
			_, _ = io.WriteString(w, list("4", account("a", "3", "True"), account("b", "2", "True"),
				account("c", "1", "True")))
		case 2:
			_, _ = io.WriteString(w, event("MODIFIED", account("b", "5", "True"))+
				event("BOOKMARK", `{"metadata": {"resourceVersion": "6"}}`))
		case 3:
			w.WriteHeader(http.StatusGone)
			_, _ = io.WriteString(w, `{"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}`)
		case 4:
			_, _ = io.WriteString(w, list("9", account("a", "3", "True"), account("b", "8", "True"),
				account("d", "7", "True")))
		case 5: // the list had this event already
			_, _ = io.WriteString(w, event("MODIFIED", account("b", "8", "True")))
		default:
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind": "Status", "code": 403, "message": "no more"}`)
		}
	})
	var got []string
	var ended error
	for e, err := range r.Watch(t.Context(), resources.ServiceAccounts, "acme", resources.ListOptions{}) {
		if err != nil {
			ended = err
			break
		}
		got = append(got, e.Type+" "+e.Object.Name()+" "+e.Object.ResourceVersion())
	}
	want := "ADDED a 3,ADDED b 2,ADDED c 1,MODIFIED b 5,MODIFIED b 8,ADDED d 7,DELETED c 1"
	if strings.Join(got, ",") != want || !errors.Is(ended, client.ErrDenied) {
		t.Errorf("got %s and error %v, want %s and ErrDenied", strings.Join(got, ","), ended, want)
	}
	if want := "list,4,6,list,9,8"; strings.Join(requests, ",") != want {
		t.Errorf("got requests from %v, want %s", requests, want)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	kinds := []resources.Kind{
		{Group: "events.k8s.io", Version: "v1", Resource: "events", Kind: "Event", Singular: "event"},
		{
			Group: "cloud.vendor.io", Version: "v1alpha1", Resource: "serviceaccounts", Kind: "ServiceAccount",
			Singular: "serviceaccount", ShortNames: []string{"sa"}, Categories: []string{"all"},
		},
		{
			Group: "cloud.vendor.io", Version: "v1alpha1", Resource: "apikeys", Kind: "APIKey", Singular: "apikey",
			ShortNames: []string{"ak"}, Categories: []string{"all"},
		},
		{Version: "v1", Resource: "events", Kind: "Event", Singular: "event"},
	}
	for word, want := range map[string]string{
		"sa":                              "serviceaccounts.cloud.vendor.io",
		"ServiceAccount":                  "serviceaccounts.cloud.vendor.io",
		"serviceaccounts.cloud.vendor.io": "serviceaccounts.cloud.vendor.io",
		"all":                             "serviceaccounts.cloud.vendor.io,apikeys.cloud.vendor.io",
		"events":                          "events.events.k8s.io",
		"pods":                            "",
		"sa.example.com":                  "",
	} {
		var got []string
		for _, k := range resources.Find(kinds, word) {
			got = append(got, k.QualifiedName())
		}
		if strings.Join(got, ",") != want {
			t.Errorf("%s: got %v, want %s", word, got, want)
		}
	}
}
