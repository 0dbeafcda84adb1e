package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ServiceAccount is the identity of a program in an organization. The service creates OAuth 2.0
// client credentials for it and returns them in status.privateKeyData. The annotation
// annotations.cloud.vendor.io/service-account-role: admin, set at creation, makes it an
// administrator of the organization.
type ServiceAccount struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Spec is empty: a service account is described by its name and annotations.
	// +optional
	Spec ServiceAccountSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// Status is set by the service.
	// +optional
	Status ServiceAccountStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// ServiceAccountSpec is empty.
type ServiceAccountSpec struct{}

// ServiceAccountStatus is the state of a service account.
type ServiceAccountStatus struct {
	// PrivateKeyType is the type of privateKeyData: TYPE_VENDOR_CREDENTIALS_FILE.
	// +optional
	PrivateKeyType string `json:"privateKeyType,omitempty" protobuf:"bytes,1,opt,name=privateKeyType"`
	// PrivateKeyData is the base64-encoded credentials file: JSON with type, client_id,
	// client_secret, client_email and issuer_url. The service omits it for callers who may not read
	// it.
	// +optional
	PrivateKeyData string `json:"privateKeyData,omitempty" protobuf:"bytes,2,opt,name=privateKeyData"`
	// Conditions has Ready first, which is True with reason Provisioned when the credentials can be
	// used.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,3,rep,name=conditions"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ServiceAccountList is a list of service accounts.
type ServiceAccountList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the service accounts.
	Items []ServiceAccount `json:"items" protobuf:"bytes,2,rep,name=items"`
}
