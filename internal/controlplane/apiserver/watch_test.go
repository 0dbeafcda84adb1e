package apiserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"freshet/internal/controlplane/kinds/kindstest"
)

// watchStream is an open watch.
type watchStream struct {
	*testing.T
	res    *http.Response
	events chan event
	cancel context.CancelFunc
}

type event struct {
	Type   string
	Object map[string]any
}

func (e event) String() string { return fmt.Sprint(e.Type, " ", at(e.Object, "metadata.name")) }

// watch opens a watch on a path with a query.
func (a *api) watch(path string) *watchStream {
	a.Helper()
	ctx, cancel := context.WithCancel(a.Context())
	res, err := http.DefaultClient.Do(a.request(http.MethodGet, path, nil).WithContext(ctx))
	if err != nil {
		a.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		a.Fatalf("%s: got %d, want 200", path, res.StatusCode)
	}
	s := &watchStream{a.T, res, make(chan event, 1000), cancel}
	go func() {
		defer close(s.events)
		defer res.Body.Close()
		decoder := json.NewDecoder(res.Body)
		for {
			var e event
			if decoder.Decode(&e) != nil {
				return
			}
			s.events <- e
		}
	}()
	a.Cleanup(cancel)
	return s
}

// next waits for one event.
func (s *watchStream) next() event {
	s.Helper()
	select {
	case e, ok := <-s.events:
		if !ok {
			s.Fatal("watch has ended, want an event")
		}
		return e
	case <-time.After(30 * time.Second):
		s.Fatal("timed out waiting for an event")
	}
	return event{}
}

// want waits for events in this order; it skips bookmarks.
func (s *watchStream) want(events ...string) {
	s.Helper()
	for _, want := range events {
		e := s.next()
		for e.Type == "BOOKMARK" {
			e = s.next()
		}
		if e.String() != want {
			s.Fatalf("event: got %s, want %s", e, want)
		}
	}
}

// rest reads until the watch ends.
func (s *watchStream) rest() (events []event) {
	s.Helper()
	deadline := time.After(30 * time.Second)
	for {
		select {
		case e, ok := <-s.events:
			if !ok {
				return events
			}
			events = append(events, e)
		case <-deadline:
			s.Fatal("timed out waiting for the end of the watch")
		}
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	a := start(t)
	for _, k := range kinds {
		t.Run(k.kind, func(t *testing.T) {
			a := a.in(t)
			a.post(k.plural, k.object("old")).want(http.StatusCreated)
			version := a.get(k.plural).version()
			watches := map[string]*watchStream{
				"from a version": a.watch(k.plural + "?watch=true&resourceVersion=" + version),
				"across":         a.watch(apiPath + "/" + k.plural + "?watch=1&resourceVersion=" + version),
				"legacy": a.watch(apiPath + "/watch/namespaces/acme/" + k.plural +
					"?resourceVersion=" + version),
				"legacy across": a.watch(apiPath + "/watch/" + k.plural + "?resourceVersion=" + version),
			}
			fromNothing := a.watch(k.plural + "?watch=true")
			fromAny := a.watch(k.plural + "?watch=true&resourceVersion=0")
			byName := a.watch(k.plural + "?watch=true&fieldSelector=" + url.QueryEscape("metadata.name=new"))
			legacyItem := a.watch(apiPath + "/watch/namespaces/acme/" + k.plural + "/new")
			fromNothing.want("ADDED old")
			fromAny.want("ADDED old")

			a.post(k.plural, k.object("new")).want(http.StatusCreated)
			a.patch(k.plural+"/new", mergePatch, `{"metadata":{"labels":{"a":"b"},"finalizers":null}}`).want(
				http.StatusOK)
			a.patch(k.plural+"/old", mergePatch, `{"metadata":{"labels":{"a":"b"}}}`).want(http.StatusOK)
			watches["from nothing"], watches["from any"] = fromNothing, fromAny
			for name, w := range watches {
				w.T = t
				t.Log(name)
				w.want("ADDED new", "MODIFIED new", "MODIFIED old")
			}
			byName.want("ADDED new", "MODIFIED new")
			legacyItem.want("ADDED new", "MODIFIED new")
		})
	}
}

func TestWatchOfDeletions(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("User")
	a.post("users", k.object("ann", `"finalizers":["example.com/hold"]`)).want(http.StatusCreated)
	w := a.watch("users?watch=true&resourceVersion=" + a.get("users").version())
	a.delete("users/ann").want(http.StatusOK)
	w.want("MODIFIED ann") // held by its finalizers
	a.patch("users/ann", mergePatch, `{"metadata":{"finalizers":null}}`).want(http.StatusOK)
	last := w.next()
	if last.String() != "DELETED ann" || at(last.Object, "metadata.deletionTimestamp") == nil {
		t.Errorf("last event: got %s of %v, want DELETED with a deletionTimestamp", last, last.Object)
	}
}

// TestWatchBySelector checks that an object that begins to match is ADDED, and one that no longer
// matches is DELETED.
func TestWatchBySelector(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("User")
	a.post("users", k.object("ann")).want(http.StatusCreated)
	byLabel := a.watch("users?watch=true&labelSelector=tier%3Dgold")
	byField := a.watch("users?watch=true&fieldSelector=spec.email%3Deve@example.com")
	a.patch("users/ann", mergePatch, `{"metadata":{"labels":{"tier":"gold"}}}`).want(http.StatusOK)
	a.patch("users/ann", mergePatch, k.change).want(http.StatusOK)
	a.patch("users/ann", mergePatch, `{"metadata":{"labels":{"tier":"tin"}}}`).want(http.StatusOK)
	a.patch("users/ann", mergePatch, `{"spec":{"email":"ann@example.com"}}`).want(http.StatusOK)
	byLabel.want("ADDED ann", "MODIFIED ann", "DELETED ann")
	byField.want("ADDED ann", "MODIFIED ann", "DELETED ann")
}

func TestWatchTimeout(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("User")
	a.post("users", k.object("ann")).want(http.StatusCreated)
	began := time.Now()
	plain := a.watch("users?watch=true&timeoutSeconds=1")
	bookmarked := a.watch("users?watch=true&timeoutSeconds=2&allowWatchBookmarks=true")
	if got := fmt.Sprint(plain.rest()); got != "[ADDED ann]" {
		t.Errorf("events: got %s, want ADDED ann", got)
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("watch ended after %s, want at least a second", took)
	}
	// A bookmark at the end gives the watcher its position before the watch is closed.
	events := bookmarked.rest()
	if len(events) < 2 || events[len(events)-1].Type != "BOOKMARK" {
		t.Fatalf("events: got %v, want a bookmark at the end", events)
	}
	last := events[len(events)-1].Object
	if got, want := fmt.Sprint(at(last, "kind"), at(last, "metadata.resourceVersion")),
		"User"+a.get("users").version(); got != want {
		t.Errorf("bookmark: got %s, want %s", got, want)
	}
}

func TestSendInitialEvents(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("User")
	a.fill(k, 3)
	const query = "users?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	w := a.watch(query)
	var got []string
	for range 4 {
		e := w.next()
		got = append(got, e.Type)
		if e.Type == "BOOKMARK" && at(e.Object, "metadata.annotations") == nil {
			t.Errorf("bookmark lacks the annotation for the end of the initial events: %v", e.Object)
		}
	}
	if want := []string{"ADDED", "ADDED", "ADDED", "BOOKMARK"}; !slices.Equal(got, want) {
		t.Errorf("first events: got %q, want %q", got, want)
	}
	a.post("users", k.object("later")).want(http.StatusCreated)
	w.want("ADDED later")

	without := a.watch("users?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=" +
		a.get("users").version())
	a.post("users", k.object("latest")).want(http.StatusCreated)
	without.want("ADDED latest")
	for _, bad := range []string{
		"users?sendInitialEvents=true", "users?watch=true&sendInitialEvents=true",
		"users?watch=true&resourceVersionMatch=NotOlderThan&resourceVersion=1",
		"users?watch=true&sendInitialEvents=true&resourceVersionMatch=Exact",
	} {
		a.get(bad).want(http.StatusUnprocessableEntity).failure()
	}
}

// TestWatchContinuesAfterARestart checks that a watch can continue from a version of before the
// restart without losing events.
func TestWatchContinuesAfterARestart(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("User")
	a.post("users", k.object("before")).want(http.StatusCreated)
	version := a.get("users").version()
	a.post("users", k.object("between")).want(http.StatusCreated)
	a.server.Restart()
	w := a.watch("users?watch=true&resourceVersion=" + version)
	first := w.next()
	if first.Type == "ERROR" {
		// Allowed: the cache was rebuilt. The client then lists and watches again.
		if at(first.Object, "code") != float64(http.StatusGone) {
			t.Fatalf("watch: got error %v, want 410", first.Object)
		}
		list := a.get("users")
		if got, want := list.names(), []string{"before", "between"}; !slices.Equal(got, want) {
			t.Errorf("after the restart: got %q, want %q", got, want)
		}
		w = a.watch("users?watch=true&resourceVersion=" + list.version())
	} else if first.String() != "ADDED between" {
		t.Fatalf("first event: got %s, want ADDED between", first)
	}
	a.post("users", k.object("after")).want(http.StatusCreated)
	w.want("ADDED after")
}

func TestWatchFromTooLongAgo(t *testing.T) {
	t.Parallel()
	a := &api{t, kindstest.Start(t, kindstest.Options{CompactionInterval: 50 * time.Millisecond}), kindstest.AdminToken}
	a.fill(find("User"), 2)
	a.server.Restart()
	first := a.watch("users?watch=true&timeoutSeconds=30&resourceVersion=1").next()
	if first.Type != "ERROR" || at(first.Object, "reason") != "Expired" ||
		at(first.Object, "code") != float64(http.StatusGone) {
		t.Errorf("event: got %s %v, want ERROR with 410 Expired", first.Type, first.Object)
	}
}

func TestWatchMediaTypes(t *testing.T) {
	t.Parallel()
	a := start(t)
	a.post("users", find("User").object("ann")).want(http.StatusCreated)
	const query = "users?watch=true&timeoutSeconds=1"
	for accept, want := range map[string]string{
		"":                                 jsonType,
		jsonType:                           jsonType,
		"application/json;stream=watch":    jsonType,
		"*/*":                              jsonType,
		protobufType:                       protobufType + ";stream=watch",
		protobufType + ";stream=watch":     protobufType + ";stream=watch",
		protobufType + ",application/json": protobufType + ";stream=watch",
		"text/html, application/json;q=.1": jsonType,
	} {
		res := a.get(query, "Accept", accept).want(http.StatusOK)
		if got := strings.ReplaceAll(res.header.Get("Content-Type"), " ", ""); got != want {
			t.Errorf("Accept %q: got %q, want %q", accept, got, want)
		}
		if len(res.body) == 0 {
			t.Errorf("Accept %q: got no event, want one", accept)
		}
	}
	for _, accept := range []string{yamlType, "text/html", "application/yaml;stream=watch"} {
		a.get(query, "Accept", accept).want(http.StatusNotAcceptable)
	}
	table := a.get(query, "Accept", tableAccept).want(http.StatusOK)
	line, _, _ := bufio.NewReader(strings.NewReader(string(table.body))).ReadLine()
	var e event
	if err := json.Unmarshal(line, &e); err != nil || at(e.Object, "kind") != "Table" ||
		at(e.Object, "rows.0.cells.0") != "ann" {
		t.Errorf("first event of a watch of tables: got %s (%v), want a Table", line, err)
	}
}
