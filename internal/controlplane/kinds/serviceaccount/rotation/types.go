package rotation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"freshet/internal/controlplane/subresource"
)

// CredentialsRotation is the request and, with its status, the response
// (docs/spec/resources.md#rotation). It is never stored.
type CredentialsRotation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   CredentialsRotationSpec   `json:"spec,omitempty"`
	Status CredentialsRotationStatus `json:"status,omitempty"`
}

// CredentialsRotationSpec describes the requested rotation.
type CredentialsRotationSpec struct {
	OverlapSeconds *int64 `json:"overlapSeconds,omitempty"`
	EndReplaced    bool   `json:"endReplaced,omitempty"`
	ClientSecret   string `json:"clientSecret,omitempty"`
}

// CredentialsRotationStatus contains the credentials that are valid from now on.
type CredentialsRotationStatus struct {
	ClientID       string              `json:"clientID,omitempty"`
	PrivateKeyType string              `json:"privateKeyType,omitempty"`
	PrivateKeyData string              `json:"privateKeyData,omitempty"`
	Replaced       *ReplacedCredential `json:"replaced,omitempty"`
}

// ReplacedCredential describes the previous credentials, which stay valid for a while.
type ReplacedCredential struct {
	ClientID       string      `json:"clientID"`
	ExpirationTime metav1.Time `json:"expirationTime"`
}

// DeepCopyObject implements runtime.Object.
func (in *CredentialsRotation) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if in.Spec.OverlapSeconds != nil {
		out.Spec.OverlapSeconds = new(*in.Spec.OverlapSeconds)
	}
	if in.Status.Replaced != nil {
		out.Status.Replaced = new(*in.Status.Replaced)
	}
	return &out
}

// OpenAPIModelName is the kind's name in the OpenAPI documents.
func (CredentialsRotation) OpenAPIModelName() string {
	return "io.vendor.cloud.v1alpha1.CredentialsRotation"
}

// definitions describes the kind for the OpenAPI documents.
func definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	object, text, reference := subresource.Object, subresource.Text, subresource.Reference
	meta := metav1.ObjectMeta{}.OpenAPIModelName()
	end := metav1.Time{}.OpenAPIModelName()
	return map[string]common.OpenAPIDefinition{
		CredentialsRotation{}.OpenAPIModelName(): {
			Dependencies: []string{meta, end},
			Schema: object("CredentialsRotation requests new credentials for a service account; the response "+
				"contains them.", map[string]spec.Schema{
				"kind": text("CredentialsRotation."), "apiVersion": text("cloud.vendor.io/v1alpha1."),
				"metadata": reference(ref, meta),
				"spec": object("The requested rotation.", map[string]spec.Schema{
					"overlapSeconds": subresource.Integer("How long the replaced credentials stay valid, in " +
						"seconds: 0 to 2592000, 86400 by default."),
					"endReplaced": {SchemaProps: spec.SchemaProps{
						Type: []string{"boolean"},
						Description: "Issue no new credentials; end those that the previous rotation has replaced, " +
							"immediately.",
					}},
					"clientSecret": text("The account's current secret: required from an account that rotates its " +
						"own credentials and does not manage accounts. It is never in the response."),
				}),
				"status": object("The credentials that are valid from now on.", map[string]spec.Schema{
					"clientID":       text("The client id of the credentials."),
					"privateKeyType": text("TYPE_VENDOR_CREDENTIALS_FILE."),
					"privateKeyData": text("The new credentials file in base64."),
					"replaced": object("The replaced credentials, while they are valid.",
						map[string]spec.Schema{
							"clientID": text("Their client id."), "expirationTime": reference(ref, end),
						}),
				}),
			}),
		},
	}
}
