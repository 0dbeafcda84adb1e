package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Annotations and their values, and values of status.privateKeyType, that the service interprets.
const (
	// AnnotationServiceAccountRole with the value "admin" makes a new ServiceAccount an
	// administrator of the organization. It cannot be changed later.
	AnnotationServiceAccountRole = "annotations.cloud.vendor.io/service-account-role"
	// AnnotationMeshEnabled is stored on a MessagingInstance without effect.
	AnnotationMeshEnabled = "annotations.cloud.vendor.io/mesh-enabled"
	// AnnotationAllowedOriginSet is stored on a ServiceAccount without effect.
	AnnotationAllowedOriginSet = "cloud.vendor.io/allowed-origin-set"
	// AnnotationDestroyProtected with any value except "false" protects an instance or a cluster:
	// the service rejects its deletion.
	AnnotationDestroyProtected = "cloud.vendor.io/destroy-protected"

	// ServiceAccountRoleAdmin is the value of AnnotationServiceAccountRole for an administrator.
	ServiceAccountRoleAdmin = "admin"
	// PrivateKeyTypeCredentialsFile is the type of all private key data.
	PrivateKeyTypeCredentialsFile = "TYPE_VENDOR_CREDENTIALS_FILE"

	// PrivateKeyTypeReset requests new credentials of a service account. The system administrator
	// writes it to the status.
	PrivateKeyTypeReset = "TYPE_RESET"
)

// Condition types of more than one kind.
const (
	ConditionReady = "Ready"
)

// ConditionStatus is True, False or Unknown.
type ConditionStatus string

// The three statuses of a condition.
const (
	ConditionTrue    ConditionStatus = "True"
	ConditionFalse   ConditionStatus = "False"
	ConditionUnknown ConditionStatus = "Unknown"
)

// Condition is one aspect of a resource's state.
type Condition struct {
	// Type names the condition, for example Ready.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type"`
	// Status is True, False or Unknown.
	Status ConditionStatus `json:"status" protobuf:"bytes,2,opt,name=status,casttype=ConditionStatus"`
	// Reason is the reason for the status, as one CamelCase word.
	// +optional
	Reason string `json:"reason,omitempty" protobuf:"bytes,3,opt,name=reason"`
	// Message explains the reason to users.
	// +optional
	Message string `json:"message,omitempty" protobuf:"bytes,4,opt,name=message"`
	// LastTransitionTime is the time at which the status last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty" protobuf:"bytes,5,opt,name=lastTransitionTime"`
	// ObservedGeneration is the metadata.generation for which the condition was set. If it is
	// smaller than the current metadata.generation, the condition is out of date.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,6,opt,name=observedGeneration"`
}

// ObjectReference refers to a pool or a pool member.
type ObjectReference struct {
	// Name is the name of the resource.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// Namespace is the namespace of the resource. If it is omitted, the name is looked up in all
	// pools of the server.
	// +optional
	Namespace string `json:"namespace,omitempty" protobuf:"bytes,2,opt,name=namespace"`
}
