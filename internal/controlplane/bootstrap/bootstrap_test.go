package bootstrap

import (
	"encoding/base64"
	"errors"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"freshet/api/generated/clientset/versioned/fake"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/pools"
	"freshet/internal/identity/identitytest"
)

// memoryFiles implements Files.
type memoryFiles struct {
	written []string
	fails   error
}

func (f *memoryFiles) Write(credentials []byte) error {
	if f.fails == nil {
		f.written = append(f.written, string(credentials))
	}
	return f.fails
}

func (f *memoryFiles) Exist() bool { return len(f.written) > 0 }

// newOptions returns options with a client whose watches report that the administrator's account
// is ready.
func newOptions(t *testing.T) (Options, *memoryFiles) {
	t.Helper()
	world := identitytest.New(t)
	client := fake.NewSimpleClientset()
	client.PrependWatchReactor("serviceaccounts", func(clienttesting.Action) (bool, watch.Interface, error) {
		events := watch.NewFakeWithChanSize(2, false)
		account := &v1alpha1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "admin", Generation: 1}}
		events.Add(account.DeepCopy()) // has no credentials yet
		file := world.Issuer.NewCredentials("ops", "admin").File()
		account.Status.PrivateKeyData = base64.StdEncoding.EncodeToString(file)
		account.Status.Conditions = []v1alpha1.Condition{{
			Type: v1alpha1.ConditionReady, Status: v1alpha1.ConditionTrue, ObservedGeneration: 1,
		}}
		events.Modify(account)
		return true, events, nil
	})
	files := &memoryFiles{}
	return Options{
		Client: client, Issuer: world.Issuer, Organization: "ops", Account: "admin", DefaultCluster: "acme/prod",
		Files: files,
		Plan: &pools.Plan{Pools: []pools.Pool{{
			Namespace: "ops", Name: "pool", Members: []pools.Member{{Name: "m", Location: "here", Engine: "pebble"}},
		}}},
	}, files
}

func TestFirstStart(t *testing.T) {
	t.Parallel()
	opts, files := newOptions(t)
	api := opts.Client.CloudV1alpha1()
	if first, err := Run(t.Context(), opts); !first || err != nil {
		t.Fatalf("first start: got %v, %v; want true", first, err)
	}
	if _, err := api.MessagingInstances("acme").Get(t.Context(), "prod", metav1.GetOptions{}); err != nil {
		t.Errorf("default instance: %v", err)
	}
	cluster, err := api.MessagingClusters("acme").Get(t.Context(), "prod", metav1.GetOptions{})
	if err != nil || cluster.Spec.Location != "here" || cluster.Spec.InstanceName != "prod" {
		t.Errorf("default cluster: got %+v, %v; want one at the location of the pool", cluster, err)
	}
	admin, err := api.ServiceAccounts("ops").Get(t.Context(), "admin", metav1.GetOptions{})
	if err != nil || admin.Annotations[v1alpha1.AnnotationServiceAccountRole] != v1alpha1.ServiceAccountRoleAdmin {
		t.Errorf("administrator: got %+v, %v; want the role of an administrator", admin, err)
	}
	if len(files.written) != 1 || !strings.Contains(files.written[0], identitytest.IssuerURL) {
		t.Errorf("files: got %q, want the credentials with the issuer's URL", files.written)
	}
	// A deleted cluster stays deleted, because the first start is over.
	if err := api.MessagingClusters("acme").Delete(t.Context(), "prod", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if first, err := Run(t.Context(), opts); first || err != nil {
		t.Errorf("second start: got %v, %v; want false", first, err)
	}
	_, err = api.MessagingClusters("acme").Get(t.Context(), "prod", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("deleted cluster: got %v, want not found", err)
	}
	if len(files.written) != 2 {
		t.Errorf("files were written %d times, want at each of the 2 starts", len(files.written))
	}
}

// TestFullDisk checks that a server with the files of an earlier start starts on a full disk.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	opts, files := newOptions(t)
	files.fails = syscall.ENOSPC
	if _, err := Run(t.Context(), opts); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("without files: got %v, want %v", err, syscall.ENOSPC)
	}
	files.written = []string{"of an earlier start"}
	if _, err := Run(t.Context(), opts); err != nil {
		t.Errorf("with files: got %v, want nil", err)
	}
}

func TestAwaitClusters(t *testing.T) {
	t.Parallel()
	opts, _ := newOptions(t)
	if _, err := Run(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	api := opts.Client.CloudV1alpha1()
	member, removed := &v1alpha1.ObjectReference{Name: "m"}, &v1alpha1.ObjectReference{Name: "gone"}
	for name, spec := range map[string]v1alpha1.MessagingClusterSpec{
		"open":             {InstanceName: "prod", PoolMemberRef: member},
		"without-instance": {InstanceName: "none", PoolMemberRef: member},
		"unplanned":        {InstanceName: "prod", PoolMemberRef: removed},
	} {
		if _, err := api.MessagingClusters("acme").Create(t.Context(), &v1alpha1.MessagingCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: spec,
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	calls := 0
	err := AwaitClusters(t.Context(), opts.Client, opts.Plan, func(uid string) bool {
		if uid == "open" {
			calls++
		}
		return calls > 2 // it opens while AwaitClusters waits
	})
	if err != nil || calls < 3 {
		t.Errorf("got %v after %d calls, want success after 3", err, calls)
	}
}
