package apiserver_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/kinds/kindstest"
	"freshet/internal/controlplane/kinds/messaginginstance"
	"freshet/internal/controlplane/store"
)

// recordingKind is the kind MessagingInstance with an observer that records its calls.
type recordingKind struct {
	*messaginginstance.Kind
	mu    sync.Mutex
	calls []string
}

// Put implements store.Observer.
func (d *recordingKind) Put(o *v1alpha1.MessagingInstance) { d.record("put", o) }

// Remove implements store.Observer.
func (d *recordingKind) Remove(o *v1alpha1.MessagingInstance) { d.record("removed", o) }

func (d *recordingKind) record(what string, o *v1alpha1.MessagingInstance) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, what+" "+o.Name+" "+o.Labels["v"])
}

// replaceIn replaces the kind MessagingInstance by the diary.
func (d *recordingKind) replaceIn(definitions []store.Definition) []store.Definition {
	out := slices.Clone(definitions)
	for i, definition := range out {
		switch definition.Info().Kind {
		case "MessagingInstance":
			out[i] = store.Define(d)
		case "MessagingCluster":
			d.Clusters = definition.(messaginginstance.Clusters)
		}
	}
	return out
}

// takeCalls returns the calls since the last call of since.
func (d *recordingKind) takeCalls() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	lines := d.calls
	d.calls = nil
	return lines
}

// TestObservers checks that the observer is called for every write before its call returns, and not
// for writes that did not happen.
func TestObservers(t *testing.T) {
	t.Parallel()
	d := &recordingKind{Kind: messaginginstance.New(kindstest.Plan(), "", nil, nil)}
	a := &api{t, kindstest.Start(t, kindstest.Options{
		Kinds: d.replaceIn(kindstest.NewSet(t).Definitions()),
	}), kindstest.AdminToken}
	k := find("MessagingInstance")
	item := k.plural + "/i"
	label := func(v string) string { return `{"metadata":{"labels":{"v":"` + v + `"}}}` }
	steps := []struct {
		name string
		call func() reply
		code int
		want []string
	}{
		{"dry create", func() reply { return a.post(k.plural+"?dryRun=All", k.object("i")) }, 201, nil},
		{"rejected create", func() reply { return a.post(k.plural, k.with(`{"type":"gold"}`, "i")) }, 422, nil},
		{"create", func() reply { return a.post(k.plural, k.object("i")) }, 201, []string{"put i "}},
		{"second create", func() reply { return a.post(k.plural, k.object("i")) }, 409, nil},
		{"dry patch", func() reply { return a.patch(item+"?dryRun=All", mergePatch, label("0")) }, 200, nil},
		{"rejected patch", func() reply { return a.patch(item, mergePatch, `{"spec":{"type":"gold"}}`) }, 422, nil},
		{"patch", func() reply { return a.patch(item, mergePatch, label("1")) }, 200, []string{"put i 1"}},
		{"stale replace", func() reply { return a.put(item, k.object("i", `"resourceVersion":"1"`)) }, 409, nil},
		{
			"replace", func() reply { return a.post(item, k.object("i", `"labels":{"v":"2"}`)) }, 200,
			[]string{"put i 2"},
		},
		{"apply", func() reply {
			return a.patch(item+"?fieldManager=me&force=true", applyPatch, k.object("i", `"labels":{"v":"3"}`))
		}, 200, []string{"put i 3"}},
		{
			"status", func() reply {
				return a.patch(item+"/status", mergePatch,
					`{"status":{"observedGeneration":1}}`)
			},
			200,
			[]string{"put i 3"},
		},
		{"dry delete", func() reply { return a.delete(item + "?dryRun=All") }, 200, nil},
		{
			"dry delete with a body", func() reply { return a.call(http.MethodDelete, item+"?dryRun=All", `{}`) }, 200,
			nil,
		},
		{"dry delete of all", func() reply { return a.delete(k.plural + "?dryRun=All") }, 200, nil},
		// The object stays active until then.
		{"delete later", func() reply { return a.delete(item + "?gracePeriodSeconds=600") }, 200, nil},
		{"delete", func() reply { return a.delete(item + "?gracePeriodSeconds=0") }, 200, []string{"removed i 3"}},
		{
			"dry removal of the finalizer",
			func() reply { return a.patch(item+"?dryRun=All", mergePatch, `{"metadata":{"finalizers":null}}`) }, 200,
			nil,
		},
		{
			"removal of the finalizer",
			func() reply { return a.patch(item, mergePatch, `{"metadata":{"finalizers":null}}`) }, 200,
			[]string{"removed i 3"},
		},
		{"delete of nothing", func() reply { return a.delete(item) }, 404, nil},
		{
			"dry apply", func() reply { return a.patch(item+"?fieldManager=me&dryRun=All", applyPatch, k.object("i")) },
			201, nil,
		},
		{
			"apply, creating", func() reply { return a.patch(item+"?fieldManager=me", applyPatch, k.object("i")) }, 201,
			[]string{"put i "},
		},
		{"delete of all", func() reply { return a.delete(k.plural) }, 200, []string{"removed i "}},
	}
	for _, step := range steps {
		step.call().want(step.code)
		got := d.takeCalls()
		if strings.HasPrefix(step.name, "removal") { // the last update deletes the object
			got = slices.DeleteFunc(got, func(line string) bool { return strings.HasPrefix(line, "put") })
		}
		if !slices.Equal(got, step.want) {
			t.Errorf("%s: observer calls: got %q, want %q", step.name, got, step.want)
		}
	}
}
