package messaginginstance

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/pools"
	"freshet/internal/controlplane/validation/validationtest"
)

// kind has no plan.
var kind = New(nil, "", nil, nil)

func TestDefaults(t *testing.T) {
	t.Parallel()
	o := &object{}
	kind.Default(o)
	if o.Spec.AvailabilityMode != "zonal" || o.Spec.Type != "standard" {
		t.Errorf("defaults: got %s and %s, want zonal and standard", o.Spec.AvailabilityMode, o.Spec.Type)
	}
	if o.Spec.Auth == nil || o.Spec.Auth.APIKey == nil || o.Spec.Auth.OAuth2 != nil {
		t.Errorf("auth: got %+v, want API keys only", o.Spec.Auth)
	}
	o = &object{Spec: v1alpha1.MessagingInstanceSpec{
		AvailabilityMode: "regional", Type: "dedicated",
		Auth: &v1alpha1.InstanceAuth{OAuth2: &v1alpha1.InstanceAuthOAuth2{}},
	}}
	kind.Default(o)
	if o.Spec.AvailabilityMode != "regional" || o.Spec.Type != "dedicated" || o.Spec.Auth.APIKey != nil {
		t.Errorf("values in the spec have changed: %+v", o.Spec)
	}
	if got := o.Spec.Auth.OAuth2.TokenLifetimeSeconds; got != 86400 {
		t.Errorf("token lifetime: got %d seconds, want 86400", got)
	}
}

// TestPools checks that a pool reference is completed at creation, and stays complete when a
// replace contains less.
func TestPools(t *testing.T) {
	t.Parallel()
	plan := &pools.Plan{Pools: []pools.Pool{{Namespace: "cloud", Name: "shared"}, {Namespace: "cloud", Name: "spare"}}}
	ref := func(namespace, name string) *v1alpha1.ObjectReference {
		return &v1alpha1.ObjectReference{Namespace: namespace, Name: name}
	}
	for name, tc := range map[string]struct{ given, want *v1alpha1.ObjectReference }{
		"none":              {nil, ref("cloud", "shared")},
		"by its name":       {ref("", "spare"), ref("cloud", "spare")},
		"in full":           {ref("cloud", "spare"), ref("cloud", "spare")},
		"unknown":           {ref("", "other"), ref("", "other")},
		"in an unknown one": {ref("there", "spare"), ref("there", "spare")},
	} {
		o := &object{Spec: v1alpha1.MessagingInstanceSpec{PoolRef: tc.given.DeepCopy()}}
		New(plan, "", nil, nil).PrepareCreate(t.Context(), o)
		if *o.Spec.PoolRef != *tc.want {
			t.Errorf("%s: got pool %v, want %v", name, o.Spec.PoolRef, tc.want)
		}
		again := &object{Spec: v1alpha1.MessagingInstanceSpec{PoolRef: tc.given.DeepCopy()}}
		kind.PrepareUpdate(t.Context(), again, o)
		validationtest.Expect(t, kind.ValidateUpdate(t.Context(), again, o))
	}
	old := &object{Spec: v1alpha1.MessagingInstanceSpec{PoolRef: ref("cloud", "shared")}}
	other := &object{Spec: v1alpha1.MessagingInstanceSpec{PoolRef: ref("", "spare")}}
	kind.PrepareUpdate(t.Context(), other, old)
	validationtest.Expect(t, kind.ValidateUpdate(t.Context(), other, old), "spec.poolRef: Invalid value")
}

func TestValidate(t *testing.T) {
	t.Parallel()
	type spec = v1alpha1.MessagingInstanceSpec
	lifetime := func(seconds int32) func(*spec) {
		return func(s *spec) {
			s.Auth.OAuth2 = &v1alpha1.InstanceAuthOAuth2{TokenLifetimeSeconds: seconds}
		}
	}
	tests := map[string]struct {
		change func(*spec)
		want   []string
	}{
		"as created": {func(*spec) {}, nil},
		"regional":   {func(s *spec) { s.AvailabilityMode = "regional" }, nil},
		"unknown mode": {
			func(s *spec) { s.AvailabilityMode = "lunar" },
			[]string{"spec.availabilityMode: Unsupported value"},
		},
		"dedicated":    {func(s *spec) { s.Type = "dedicated" }, nil},
		"serverless":   {func(s *spec) { s.Type = "serverless" }, nil},
		"byoc":         {func(s *spec) { s.Type = "byoc" }, nil},
		"byoc-pro":     {func(s *spec) { s.Type = "byoc-pro" }, nil},
		"unknown type": {func(s *spec) { s.Type = "gold" }, []string{"spec.type: Unsupported value"}},
		"free":         {func(s *spec) { s.Type = "free" }, nil},
		"free and regional": {
			func(s *spec) { s.Type, s.AvailabilityMode = "free", "regional" },
			[]string{"spec.availabilityMode: Invalid value"},
		},
		"pool without a name": {
			func(s *spec) { s.PoolRef = &v1alpha1.ObjectReference{} },
			[]string{"spec.poolRef.name: Required value"},
		},
		"impossible pool": {
			func(s *spec) { s.PoolRef = &v1alpha1.ObjectReference{Name: "A/B"} },
			[]string{"spec.poolRef.name: Invalid value"},
		},
		"longest token":         {lifetime(2592000), nil},
		"token that is too old": {lifetime(2592001), []string{"spec.auth.oauth2.tokenLifetimeSeconds: Invalid value"}},
		"token of the past":     {lifetime(-1), []string{"spec.auth.oauth2.tokenLifetimeSeconds: Invalid value"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &object{}
			kind.Default(o)
			tc.change(&o.Spec)
			validationtest.Expect(t, kind.Validate(t.Context(), o), tc.want...)
		})
	}
}

func TestValidateUpdate(t *testing.T) {
	t.Parallel()
	old := &object{Spec: v1alpha1.MessagingInstanceSpec{PoolRef: &v1alpha1.ObjectReference{Name: "p"}}}
	kind.Default(old)
	o := old.DeepCopy()
	o.Spec.Auth.OAuth2 = &v1alpha1.InstanceAuthOAuth2{TokenLifetimeSeconds: 60}
	validationtest.Expect(t, kind.ValidateUpdate(t.Context(), o, old))
	o.Spec.AvailabilityMode, o.Spec.Type, o.Spec.PoolRef = "regional", "dedicated", &v1alpha1.ObjectReference{Name: "q"}
	validationtest.Expect(t, kind.ValidateUpdate(t.Context(), o, old),
		"spec.availabilityMode: Invalid value", "spec.type: Invalid value", "spec.poolRef: Invalid value")
}

// clusters is a store of clusters with fixed results.
type clusters struct {
	names, protected []string
	err              error
}

// NamesWhere implements Clusters.
func (c clusters) NamesWhere(_ context.Context, _, field, _ string) (names, protected []string, err error) {
	if field != "spec.instanceName" {
		return nil, nil, errors.New("clusters cannot be selected by " + field)
	}
	return c.names, c.protected, c.err
}

func TestValidateDelete(t *testing.T) {
	t.Parallel()
	foreground, background := metav1.DeletePropagationForeground, metav1.DeletePropagationBackground
	none, two := clusters{}, clusters{names: []string{"a", "b"}}
	protection := func(value string) map[string]string {
		return map[string]string{v1alpha1.AnnotationDestroyProtected: value}
	}
	tests := map[string]struct {
		annotations map[string]string
		policy      *metav1.DeletionPropagation
		clusters    clusters
		want        string // part of the message of a conflict
	}{
		"empty":                            {nil, nil, none, ""},
		"with clusters":                    {nil, nil, two, "a, b"},
		"with clusters, in the background": {nil, &background, two, "a, b"},
		"with clusters, in the foreground": {nil, &foreground, two, ""},
		"with a protected cluster": {
			nil, &foreground,
			clusters{names: []string{"a", "b"}, protected: []string{"b"}},
			"protected: b",
		},
		"protected":                              {protection("true"), nil, none, "destroy-protected"},
		"protected by an empty word":             {protection(""), nil, none, "destroy-protected"},
		"protected, in the foreground":           {protection("true"), &foreground, two, "destroy-protected"},
		"no longer protected":                    {protection("false"), nil, none, ""},
		"no longer protected, but with clusters": {protection("false"), nil, two, "a, b"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &object{ObjectMeta: metav1.ObjectMeta{Name: "i", Annotations: tc.annotations}}
			err := (&Kind{Clusters: tc.clusters}).ValidateDelete(t.Context(), o,
				&metav1.DeleteOptions{PropagationPolicy: tc.policy})
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("got error %v, want none", err)
			case tc.want != "" && (!apierrors.IsConflict(err) || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want a conflict with %s", err, tc.want)
			}
		})
	}
}

func TestDeletionIsRefusedWhenClustersCannotBeRead(t *testing.T) {
	t.Parallel()
	broken := errors.New("etcd is unavailable")
	err := (&Kind{Clusters: clusters{err: broken}}).ValidateDelete(t.Context(), &object{}, &metav1.DeleteOptions{})
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}
