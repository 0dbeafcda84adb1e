package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Annotations and finalizers that mean something to the service.
const (
	// AnnotationServiceAccountRole on a ServiceAccount: "admin" at creation
	// makes an administrator of the organization; it cannot be changed later.
	AnnotationServiceAccountRole = "annotations.cloud.vendor.io/service-account-role"
	// AnnotationMeshEnabled is accepted on a MessagingInstance and kept.
	AnnotationMeshEnabled = "annotations.cloud.vendor.io/mesh-enabled"
	// AnnotationAllowedOriginSet is accepted on a ServiceAccount and kept.
	AnnotationAllowedOriginSet = "cloud.vendor.io/allowed-origin-set"
	// AnnotationDestroyProtected on an instance or a cluster: anything but
	// "false" refuses its deletion.
	AnnotationDestroyProtected = "cloud.vendor.io/destroy-protected"

	// ServiceAccountRoleAdmin is the value of AnnotationServiceAccountRole
	// that makes an administrator.
	ServiceAccountRoleAdmin = "admin"
	// PrivateKeyTypeCredentialsFile is the only type of private key data.
	PrivateKeyTypeCredentialsFile = "TYPE_VENDOR_CREDENTIALS_FILE"

	// PrivateKeyTypeReset, written to the status by the system administrator, asks for
	// new credentials.
	PrivateKeyTypeReset = "TYPE_RESET"
)

// Condition types that more than one kind uses.
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

// Condition is one observation of a resource's state.
type Condition struct {
	// Type names the condition, for example Ready.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type"`
	// Status is True, False or Unknown.
	Status ConditionStatus `json:"status" protobuf:"bytes,2,opt,name=status,casttype=ConditionStatus"`
	// Reason is one CamelCase word that says why the status is what it is.
	// +optional
	Reason string `json:"reason,omitempty" protobuf:"bytes,3,opt,name=reason"`
	// Message explains the reason to a person.
	// +optional
	Message string `json:"message,omitempty" protobuf:"bytes,4,opt,name=message"`
	// LastTransitionTime is when the status last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty" protobuf:"bytes,5,opt,name=lastTransitionTime"`
	// ObservedGeneration is the metadata.generation the condition was set for.
	// A smaller number than metadata.generation means the condition is out of date.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,6,opt,name=observedGeneration"`
}

// ObjectReference names a resource, in the same namespace unless it says otherwise.
type ObjectReference struct {
	// Name of the resource.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// Namespace (organization) of the resource.
	// +optional
	Namespace string `json:"namespace,omitempty" protobuf:"bytes,2,opt,name=namespace"`
}
