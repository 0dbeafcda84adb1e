package apiserver_test

import (
	"context"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/generated/informers/externalversions"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/kinds/kindstest"
)

// observedEvents counts the events of an informer.
type observedEvents struct {
	mu     sync.Mutex
	events map[string]int
	signal chan struct{}
}

func follow(t *testing.T, informer cache.SharedIndexInformer) *observedEvents {
	t.Helper()
	s := &observedEvents{events: map[string]int{}, signal: make(chan struct{}, 1)}
	note := func(what string) func(any) {
		return func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			s.mu.Lock()
			s.events[what+" "+obj.(metav1.Object).GetName()]++
			s.mu.Unlock()
			select {
			case s.signal <- struct{}{}:
			default:
			}
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: note("add"), UpdateFunc: func(_, obj any) { note("update")(obj) }, DeleteFunc: note("delete"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *observedEvents) await(t *testing.T, events ...string) {
	t.Helper()
	deadline := time.After(60 * time.Second)
	for {
		s.mu.Lock()
		missing := slices.DeleteFunc(slices.Clone(events), func(e string) bool { return s.events[e] > 0 })
		all := slices.Sorted(maps.Keys(s.events))
		s.mu.Unlock()
		if len(missing) == 0 {
			return
		}
		select {
		case <-s.signal:
		case <-deadline:
			t.Fatalf("timed out waiting for events %q, got %q", missing, all)
		}
	}
}

func TestInformers(t *testing.T) {
	t.Parallel()
	s := kindstest.Start(t, kindstest.Options{})
	c := connect(t, s)
	c.createUsers(t, "old")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	typed := externalversions.NewSharedInformerFactory(c.typed, 0)
	binary := externalversions.NewSharedInformerFactoryWithOptions(c.binary, 0, externalversions.WithNamespace("acme"))
	anyKind := dynamicinformer.NewDynamicSharedInformerFactory(c.dynamic, 0)
	watchers := map[string]*observedEvents{
		"typed":    follow(t, typed.Cloud().V1alpha1().Users().Informer()),
		"protobuf": follow(t, binary.Cloud().V1alpha1().Users().Informer()),
		"dynamic":  follow(t, anyKind.ForResource(v1alpha1.SchemeGroupVersion.WithResource("users")).Informer()),
	}
	typed.Start(ctx.Done())
	binary.Start(ctx.Done())
	anyKind.Start(ctx.Done())
	typed.WaitForCacheSync(ctx.Done())

	users := c.typed.CloudV1alpha1().Users("acme")
	c.createUsers(t, "new")
	for name, w := range watchers {
		t.Log(name)
		w.await(t, "add old", "add new")
	}
	fresh, err := users.Get(t.Context(), "new", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	fresh.Labels = map[string]string{"a": "b"}
	if _, err = users.Update(t.Context(), fresh, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, w := range watchers {
		w.await(t, "update new")
	}
	if err := users.Delete(t.Context(), "new", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, w := range watchers {
		w.await(t, "delete new")
	}
	cached, err := typed.Cloud().V1alpha1().Users().Lister().Users("acme").List(labels.Everything())
	if err != nil || len(cached) != 1 || cached[0].Name != "old" {
		t.Errorf("cache: got %v (%v), want old", cached, err)
	}
}

// TestRetryWatcherContinuesAfterARestart checks that a watch from a version of before a restart
// continues afterwards and misses nothing.
func TestRetryWatcherContinuesAfterARestart(t *testing.T) {
	t.Parallel()
	s := kindstest.Start(t, kindstest.Options{})
	c := connect(t, s)
	c.createUsers(t, "one")
	list, err := c.typed.CloudV1alpha1().Users("acme").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.Restart()
	c = connect(t, s) // the server has a new port
	c.createUsers(t, "two", "three")
	w, err := watchtools.NewRetryWatcherWithContext(t.Context(), list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return c.typed.CloudV1alpha1().Users("acme").Watch(ctx, options)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for _, want := range []string{"two", "three"} {
		select {
		case e := <-w.ResultChan():
			user, ok := e.Object.(*v1alpha1.User)
			if !ok || e.Type != watch.Added || user.Name != want {
				t.Fatalf("event: got %s %v, want ADDED %s", e.Type, e.Object, want)
			}
		case <-time.After(60 * time.Second):
			t.Fatal("timed out waiting for an event")
		}
	}
}

// TestInformersContinueAfterARestart checks that an informer has all objects after a restart of the
// server, without repeated events.
func TestInformersContinueAfterARestart(t *testing.T) {
	t.Parallel()
	s := kindstest.Start(t, kindstest.Options{})
	var address atomic.Value
	address.Store(strings.TrimPrefix(s.URL, "http://"))
	config := s.Client()
	config.Host = "http://freshet.test" // Dial connects to the current address of the server
	config.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address.Load().(string))
	}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	c := clients{typed: client}
	c.createUsers(t, "one")
	factory := externalversions.NewSharedInformerFactory(client, 0)
	watcher := follow(t, factory.Cloud().V1alpha1().Users().Informer())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	factory.Start(ctx.Done())
	watcher.await(t, "add one")

	s.Restart()
	connect(t, s).createUsers(t, "two") // before the informer has reconnected
	address.Store(strings.TrimPrefix(s.URL, "http://"))
	watcher.await(t, "add two")
	c.createUsers(t, "three")
	watcher.await(t, "add three")
	watcher.mu.Lock()
	defer watcher.mu.Unlock()
	for event, times := range watcher.events {
		if times != 1 {
			t.Errorf("event %s: got %d times, want once", event, times)
		}
	}
}
