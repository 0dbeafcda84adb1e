package apiserver_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/apiserver"
	"freshet/internal/controlplane/etcd"
	"freshet/internal/controlplane/kinds/kindstest"
	"freshet/internal/identity/access"
)

// TestStoresCallTheMember checks that reads, writes and watches use no connection if the etcd
// member is in the process.
func TestStoresCallTheMember(t *testing.T) {
	t.Parallel()
	member, err := etcd.Start(t.Context(), t.TempDir(), etcd.Options{Unsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	endpoints := member.Endpoints()
	endpoints.Dialer = noDialer{}
	api, err := apiserver.New(apiserver.Config{
		Etcd: endpoints, Kinds: kindstest.NewSet(t).Definitions(), Authorizer: access.NewPolicy(),
		Address: "127.0.0.1:8080",
	})
	if err != nil {
		t.Fatal(err)
	}
	api.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := errors.Join(api.Stop(ctx), member.Close()); err != nil {
			t.Error(err)
		}
	})
	client, err := versioned.NewForConfig(api.Loopback())
	if err != nil {
		t.Fatal(err)
	}
	users := client.CloudV1alpha1().Users("acme")
	watch, err := users.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	user := &v1alpha1.User{
		ObjectMeta: metav1.ObjectMeta{Name: "ann"},
		Spec:       v1alpha1.UserSpec{Email: "ann@example.org"},
	}
	if _, err := users.Create(t.Context(), user, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if event, ok := (<-watch.ResultChan()).Object.(*v1alpha1.User); !ok || event.Name != "ann" {
		t.Errorf("watch: got %+v, want ann", event)
	}
	for _, version := range []string{"", "0"} {
		if got, err := users.Get(t.Context(), "ann", metav1.GetOptions{ResourceVersion: version}); err != nil ||
			got.Spec.Email != "ann@example.org" {
			t.Errorf("get at version %q: got %+v, %v, want ann", version, got, err)
		}
		if list, err := users.List(t.Context(), metav1.ListOptions{ResourceVersion: version}); err != nil ||
			len(list.Items) != 1 {
			t.Errorf("list at version %q: got %+v, %v, want ann", version, list, err)
		}
	}
}

// noDialer fails to connect.
type noDialer struct{}

// Dial implements etcd.Dialer.
func (noDialer) Dial(context.Context) (net.Conn, error) {
	return nil, errors.New("dialing is not expected")
}

// TestLiveWithoutEtcd checks that a process that has lost its etcd is live but not ready, with
// embedded and external etcd. A supervisor that restarts processes that are not live must not do so
// because other processes are lost.
func TestLiveWithoutEtcd(t *testing.T) {
	t.Parallel()
	for name, called := range map[string]bool{"embedded": true, "external": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			member, err := etcd.Start(t.Context(), t.TempDir(), etcd.Options{Unsafe: true})
			if err != nil {
				t.Fatal(err)
			}
			endpoints := member.Endpoints()
			if !called {
				endpoints.Member = nil
			}
			api, err := apiserver.New(apiserver.Config{
				Etcd: endpoints, Kinds: kindstest.NewSet(t).Definitions(), Authorizer: access.NewPolicy(),
				Address: "127.0.0.1:8080",
			})
			if err != nil {
				t.Fatal(err)
			}
			api.Start()
			t.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
				defer cancel()
				_ = api.Stop(ctx) // its etcd is closed
			})
			health := func(path string) (int, string) {
				w := httptest.NewRecorder()
				api.Handler().ServeHTTP(w,
					httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
				return w.Code, w.Body.String()
			}
			until := func(path string, want int) {
				t.Helper()
				deadline, tick := time.Now().Add(30*time.Second), time.NewTicker(50*time.Millisecond)
				defer tick.Stop()
				for {
					code, text := health(path)
					if code == want {
						return
					}
					if time.Now().After(deadline) {
						t.Fatalf("%s: got %d %s, want %d", path, code, text, want)
					}
					<-tick.C
				}
			}
			until("/readyz", http.StatusOK)
			if err := member.Close(); err != nil {
				t.Fatal(err)
			}
			until("/readyz", http.StatusInternalServerError)
			if code, text := health("/livez?verbose"); code != http.StatusOK || strings.Contains(text, "etcd") {
				t.Errorf("/livez: got %d %s, want 200 and no check of etcd", code, text)
			}
		})
	}
}
