package store_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"freshet/api/v1alpha1"
	"freshet/internal/base/errs"
	"freshet/internal/controlplane/etcd"
	"freshet/internal/controlplane/store"
	"freshet/internal/identity/access"
	"freshet/internal/ops/quota"
)

const finalizer = "test.finalizers.cloud.vendor.io"

type object = v1alpha1.Role

// testKind implements every optional interface and records the calls that follow the decision about
// a write. Its objects ask for rejections in their labels.
type testKind struct {
	mu       sync.Mutex // protects the fields below
	calls    []string
	reserved int // reservations that are not released
}

func (k *testKind) record(call string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls = append(k.calls, call)
}

// recorded returns the calls since the last one.
func (k *testKind) recorded() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	calls := k.calls
	k.calls = nil
	return calls
}

func (*testKind) Info() store.Info {
	return store.Info{
		Kind: "Role", Plural: "roles", Singular: "role", Finalizer: finalizer, DeletesImmediately: true,
		NamePrefix: "role-", Owner: "User", OwnerField: "spec.description",
	}
}
func (*testKind) New() *object            { return &object{} }
func (*testKind) NewList() runtime.Object { return &v1alpha1.RoleList{} }
func (*testKind) Spec(o *object) any      { return &o.Spec }
func (*testKind) Status(o *object) any    { return &o.Status }

func (*testKind) PrepareCreate(_ context.Context, o *object) {
	o.Spec.Permissions = append(o.Spec.Permissions, "prepared")
}

func (*testKind) PrepareUpdate(_ context.Context, o, old *object) {
	o.Spec.Permissions = old.Spec.Permissions
}

func (*testKind) PrepareStatus(_ context.Context, o, _ *object) {
	o.Status.Conditions = slices.DeleteFunc(o.Status.Conditions,
		func(c v1alpha1.Condition) bool { return c.Type == "Issued" })
}

func (*testKind) Validate(_ context.Context, o *object) field.ErrorList {
	if o.Labels["validation"] == "rejects" {
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "labels"), "rejects", "")}
	}
	return nil
}

func (*testKind) ValidateDelete(_ context.Context, o *object, _ *metav1.DeleteOptions) error {
	if store.Protected(o) {
		return store.ProtectedError(v1alpha1.Resource("roles"), o.Name)
	}
	return nil
}

func (*testKind) Admit(_ context.Context, o, _ *object) error {
	if o.Labels["admission"] == "rejects" {
		return errors.New("not admitted")
	}
	return nil
}

func (*testKind) Quota() quota.Resource { return quota.Instances }

func (k *testKind) Reserve(_ context.Context, o *object) (func(), error) {
	if o.Labels["quota"] == "rejects" {
		return nil, errs.New(errs.Exhausted, "quota is exhausted")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reserved++
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.reserved--
	}, nil
}

func (k *testKind) Finish(o *object) {
	k.record("finish")
	o.Status.Conditions = []v1alpha1.Condition{{Type: "Issued", Status: "True", Reason: "Test"}}
}
func (k *testKind) Expect(o *object) { k.record("expect " + string(o.Status.Conditions[0].Status)) }
func (k *testKind) Put(*object)      { k.record("put") }
func (k *testKind) Remove(*object)   { k.record("remove") }
func (*testKind) Reveal(o *object)   { o.Annotations = map[string]string{"revealed": "once"} }

func (*testKind) Fields(o *object) fields.Set {
	return fields.Set{"spec.description": o.Spec.Description}
}

func (*testKind) Scope(o *object) access.Scope {
	return access.Scope{Organization: o.Namespace, Instance: o.Labels["instance"]}
}

// testAuthorizer denies everything in the instance "closed", and the verbs that a test denies.
type testAuthorizer struct {
	mu     sync.Mutex
	denied []string
}

func (a *testAuthorizer) deny(verbs ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.denied = verbs
}

func (a *testAuthorizer) denies(verb string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Contains(a.denied, verb)
}

func (a *testAuthorizer) Authorize(_ context.Context, resource, verb, name string, scope access.Scope) error {
	if scope.Instance == "closed" || a.denies(verb) {
		return apierrors.NewForbidden(v1alpha1.Resource(resource), name, access.ErrDenied)
	}
	return nil
}

func (a *testAuthorizer) AuthorizeBlocking(_ context.Context, _ string, owner metav1.OwnerReference) error {
	if a.denies("block") {
		return apierrors.NewForbidden(v1alpha1.Resource("users"), owner.Name, access.ErrDenied)
	}
	return nil
}

func (a *testAuthorizer) Filter(_ context.Context, _, verb, _ string) (store.Filter, bool) {
	return func(scope access.Scope) bool { return scope.Instance != "closed" }, !a.denies(verb)
}

// world is one kind on an embedded etcd.
type world struct {
	*testing.T
	ctx        context.Context //nolint:containedctx // of the calls of one test
	kind       *testKind
	authorizer *testAuthorizer
	resource   *store.Resource[*object]
	main       *store.Authorized[*object]
	status     *store.AuthorizedStatus[*object]
}

func newWorld(t *testing.T) *world {
	t.Helper()
	member, err := etcd.Start(t.Context(), t.TempDir(), etcd.Options{Unsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := member.Close(); err != nil {
			t.Errorf("close etcd: %v", err)
		}
	})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, v1alpha1.AddInternalToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{
		T: t, ctx: request.WithNamespace(t.Context(), "acme"), kind: &testKind{}, authorizer: &testAuthorizer{},
	}
	w.resource = store.Define(w.kind)
	if err := w.resource.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	codec := serializer.NewCodecFactory(scheme).LegacyCodec(v1alpha1.SchemeGroupVersion)
	opened, err := w.resource.Open(scheme, etcdOptions{member.Endpoints(), codec}, w.authorizer)
	if err != nil {
		t.Fatal(err)
	}
	w.main, w.status = opened.Main.(*store.Authorized[*object]), opened.Status.(*store.AuthorizedStatus[*object])
	t.Cleanup(w.main.Destroy)
	return w
}

// etcdOptions opens stores on an etcd, without a watch cache.
type etcdOptions struct {
	etcd  etcd.Endpoints
	codec runtime.Codec
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (o etcdOptions) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	config := storagebackend.NewDefaultConfig("/test", o.codec)
	config.Transport.ServerList = o.etcd.URLs
	config.Transport.EgressLookup = func(egressselector.NetworkContext) (utilnet.DialFunc, error) {
		return func(ctx context.Context, _, _ string) (net.Conn, error) { return o.etcd.Dialer.Dial(ctx) }, nil
	}
	return generic.RESTOptions{
		StorageConfig: config.ForResource(resource), Decorator: generic.UndecoratedStorage,
		ResourcePrefix: resource.Resource, EnableGarbageCollection: true,
	}, nil
}

func role(name string, labels ...string) *object {
	o := &object{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "acme", Labels: map[string]string{"test": "yes"},
	}}
	for i := 0; i < len(labels); i += 2 {
		o.Labels[labels[i]] = labels[i+1]
	}
	return o
}

func (w *world) create(o *object, dryRun ...string) (*object, error) {
	w.Helper()
	out, err := w.main.Create(w.ctx, o, nil, &metav1.CreateOptions{DryRun: dryRun})
	created, _ := out.(*object)
	return created, err
}

func (w *world) mustCreate(o *object) *object {
	w.Helper()
	out, err := w.create(o)
	if err != nil {
		w.Fatal(err)
	}
	w.kind.recorded()
	return out
}

// update writes what change makes of the stored object, to the main resource or the status.
func (w *world) update(to rest.Updater, name string, change func(*object), dryRun ...string) (*object, error) {
	w.Helper()
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		changed := old.DeepCopyObject().(*object)
		change(changed)
		return changed, nil
	})
	out, _, err := to.Update(w.ctx, name, info, nil, nil, false, &metav1.UpdateOptions{DryRun: dryRun})
	updated, _ := out.(*object)
	return updated, err
}

// apply creates an object with an update, as a server-side apply does.
func (w *world) apply(o *object) error {
	w.Helper()
	_, _, err := w.main.Update(w.ctx, o.Name, rest.DefaultUpdatedObjectInfo(o), nil, nil, true, &metav1.UpdateOptions{})
	return err
}

func (w *world) wantCalls(want ...string) {
	w.Helper()
	if got := w.kind.recorded(); !slices.Equal(got, want) {
		w.Errorf("calls of the kind: got %q, want %q", got, want)
	}
}
