package subresource_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"freshet/internal/controlplane/subresource"
)

type body = metav1.PartialObjectMetadata

// handler records its calls; labels of the body ask for rejections.
type handler struct {
	calls []string
	last  subresource.Call[*body]
}

func (h *handler) Authorize(_ context.Context, _, _ string, body *body) error {
	h.calls = append(h.calls, "authorize")
	if body.Labels["authorize"] != "" {
		return errors.New("denied")
	}
	return nil
}

func (h *handler) Validate(body *body) field.ErrorList {
	h.calls = append(h.calls, "validate")
	if body.Labels["validate"] != "" {
		return field.ErrorList{field.Required(field.NewPath("spec"), "")}
	}
	return nil
}

func (h *handler) Execute(_ context.Context, call subresource.Call[*body]) (runtime.Object, error) {
	h.calls, h.last = append(h.calls, "execute"), call
	return call.Body, nil
}

// TestSteps checks that a call is authorized before it is validated, and executed after both.
func TestSteps(t *testing.T) {
	t.Parallel()
	kind := schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "Ticket"}
	executed := func(err error) bool { return err == nil }
	for name, tc := range map[string]struct {
		label  string
		reject bool // by the API machinery's validation
		calls  []string
		want   func(error) bool
	}{
		"allowed":      {"", false, []string{"authorize", "validate", "execute"}, executed},
		"denied":       {"authorize", false, []string{"authorize"}, apierrors.IsForbidden},
		"invalid":      {"validate", false, []string{"authorize", "validate"}, apierrors.IsInvalid},
		"not admitted": {"", true, []string{"authorize", "validate"}, func(err error) bool { return err != nil }},
	} {
		h := &handler{}
		create := subresource.New(kind, "things/ticket", h).(rest.NamedCreater)
		ctx := request.WithNamespace(t.Context(), "acme")
		validate := func(context.Context, runtime.Object) error {
			if tc.reject {
				return errors.New("rejected")
			}
			return nil
		}
		labels := map[string]string{tc.label: "no"}
		_, err := create.Create(ctx, "x", &body{ObjectMeta: metav1.ObjectMeta{Labels: labels}}, validate,
			&metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if !tc.want(err) || !slices.Equal(h.calls, tc.calls) {
			t.Errorf("%s: got %q and %v, want %q", name, h.calls, err, tc.calls)
		}
		if err == nil && (h.last.Organization != "acme" || h.last.Name != "x" || !h.last.DryRun) {
			t.Errorf("%s: got call %+v, want a dry run for x of acme", name, h.last)
		}
	}
	create := subresource.New(kind, "things/ticket", &handler{}).(rest.NamedCreater)
	_, err := create.Create(t.Context(), "x", &metav1.Status{}, nil, &metav1.CreateOptions{})
	if !apierrors.IsBadRequest(err) {
		t.Errorf("body of another type: got %v, want BadRequest", err)
	}
}
