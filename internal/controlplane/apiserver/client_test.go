package apiserver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/kinds/kindstest"
)

// clients contains the clients of client-go, with JSON and with protobuf.
type clients struct {
	typed   versioned.Interface
	binary  versioned.Interface
	dynamic dynamic.Interface
}

func connect(t *testing.T, s *kindstest.Server) clients {
	t.Helper()
	typed, err1 := versioned.NewForConfig(s.Client())
	asProtobuf := rest.CopyConfig(s.Client())
	asProtobuf.ContentType, asProtobuf.AcceptContentTypes = protobufType, protobufType+",application/json"
	binary, err2 := versioned.NewForConfig(asProtobuf)
	dyn, err3 := dynamic.NewForConfig(s.Client())
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	return clients{typed, binary, dyn}
}

func newUser(name string) *v1alpha1.User {
	return &v1alpha1.User{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.UserSpec{Email: name + "@example.com"},
	}
}

func (c clients) createUsers(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := c.typed.CloudV1alpha1().Users("acme").Create(t.Context(), newUser(name),
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPagers(t *testing.T) {
	t.Parallel()
	s := kindstest.Start(t, kindstest.Options{})
	c := connect(t, s)
	var want []string
	for i := range 25 {
		want = append(want, fmt.Sprintf("u%02d", i))
	}
	c.createUsers(t, want...)
	pages := 0
	p := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		pages++
		return c.binary.CloudV1alpha1().Users("acme").List(ctx, options)
	})
	p.PageSize = 10
	var got []string
	err := p.EachListItem(t.Context(), metav1.ListOptions{}, func(obj runtime.Object) error {
		got = append(got, obj.(*v1alpha1.User).Name)
		return nil
	})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("pager: got %q (%v), want all users", got, err)
	}
	if pages != 3 {
		t.Errorf("pager requested %d pages, want 3", pages)
	}
}

// TestConflictsAreRetried checks that concurrent read-modify-write cycles lose no update.
func TestConflictsAreRetried(t *testing.T) {
	t.Parallel()
	s := kindstest.Start(t, kindstest.Options{})
	c := connect(t, s)
	c.createUsers(t, "shared")
	const writers = 12
	calls, ctx := errgroup.WithContext(t.Context())
	for i := range writers {
		client := c.typed
		if i%2 == 0 {
			client = c.binary
		}
		calls.Go(func() error {
			backoff := wait.Backoff{Steps: 500, Duration: 5 * time.Millisecond, Factor: 1, Jitter: 2}
			return retry.RetryOnConflict(backoff, func() error {
				user, err := client.CloudV1alpha1().Users("acme").Get(ctx, "shared", metav1.GetOptions{})
				if err != nil {
					return err
				}
				if user.Annotations == nil {
					user.Annotations = map[string]string{}
				}
				user.Annotations[fmt.Sprint("writer-", i)] = "was here"
				_, err = client.CloudV1alpha1().Users("acme").Update(ctx, user, metav1.UpdateOptions{})
				return err
			})
		})
	}
	if err := calls.Wait(); err != nil {
		t.Fatal(err)
	}
	user, err := c.typed.CloudV1alpha1().Users("acme").Get(t.Context(), "shared", metav1.GetOptions{})
	if err != nil || len(user.Annotations) != writers {
		t.Errorf("got annotations of %d of %d writers (%v)", len(user.Annotations), writers, err)
	}
}

// TestConcurrentPatchesNeedNoRetry checks that the server retries conflicting patches itself, and
// that no patch is lost.
func TestConcurrentPatchesNeedNoRetry(t *testing.T) {
	t.Parallel()
	s := kindstest.Start(t, kindstest.Options{})
	c := connect(t, s)
	c.createUsers(t, "shared")
	const writers = 8
	calls, ctx := errgroup.WithContext(t.Context())
	for i := range writers {
		calls.Go(func() error {
			patch := fmt.Sprintf(`{"metadata":{"annotations":{"writer-%d":"was here"}}}`, i)
			_, err := c.typed.CloudV1alpha1().Users("acme").Patch(ctx, "shared", "application/merge-patch+json",
				[]byte(patch), metav1.PatchOptions{})
			return err
		})
	}
	if err := calls.Wait(); err != nil {
		t.Fatal(err)
	}
	user, err := c.typed.CloudV1alpha1().Users("acme").Get(t.Context(), "shared", metav1.GetOptions{})
	if err != nil || len(user.Annotations) != writers {
		t.Errorf("got annotations of %d of %d patches (%v)", len(user.Annotations), writers, err)
	}
}
