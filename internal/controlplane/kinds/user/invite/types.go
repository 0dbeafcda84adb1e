package invite

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"freshet/internal/controlplane/subresource"
)

// InvitationLink is the request and, with its status, the response
// (docs/spec/signin.md#invitations). It is never stored.
type InvitationLink struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   InvitationLinkSpec   `json:"spec,omitempty"`
	Status InvitationLinkStatus `json:"status,omitempty"`
}

// InvitationLinkSpec describes the requested link.
type InvitationLinkSpec struct {
	LifetimeSeconds *int64 `json:"lifetimeSeconds,omitempty"`
}

// InvitationLinkStatus is the link.
type InvitationLinkStatus struct {
	URL            string       `json:"url,omitempty"`
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (in *InvitationLink) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if in.Spec.LifetimeSeconds != nil {
		out.Spec.LifetimeSeconds = new(*in.Spec.LifetimeSeconds)
	}
	out.Status.ExpirationTime = in.Status.ExpirationTime.DeepCopy()
	return &out
}

// OpenAPIModelName is the kind's name in the OpenAPI documents.
func (InvitationLink) OpenAPIModelName() string { return "io.vendor.cloud.v1alpha1.InvitationLink" }

// definitions describes the kind for the OpenAPI documents.
func definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	object, text, reference := subresource.Object, subresource.Text, subresource.Reference
	meta, end := metav1.ObjectMeta{}.OpenAPIModelName(), metav1.Time{}.OpenAPIModelName()
	return map[string]common.OpenAPIDefinition{
		InvitationLink{}.OpenAPIModelName(): {
			Dependencies: []string{meta, end},
			Schema: object("InvitationLink requests a one-time link with which a person sets a "+
				"password; the response contains the link.", map[string]spec.Schema{
				"kind": text("InvitationLink."), "apiVersion": text("cloud.vendor.io/v1alpha1."),
				"metadata": reference(ref, meta),
				"spec": object("The requested link.", map[string]spec.Schema{
					"lifetimeSeconds": subresource.Integer("Lifetime of the link in seconds: 60 to 2592000, " +
						"604800 (7 days) by default."),
				}),
				"status": object("The link.", map[string]spec.Schema{
					"url": text("Address at which the person sets a password, once. Its holder can sign in " +
						"as the user."),
					"expirationTime": reference(ref, end),
				}),
			}),
		},
	}
}
