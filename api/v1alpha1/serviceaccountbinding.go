package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ServiceAccountBinding lets a service account run workloads in the environment of a pool member.
// It controls placement; a RoleBinding grants permissions. It is deleted together with its service
// account.
type ServiceAccountBinding struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Spec has the service account and the pool member. It cannot be changed.
	// +optional
	Spec ServiceAccountBindingSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// Status is set by the service.
	// +optional
	Status ServiceAccountBindingStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// ServiceAccountBindingSpec has the service account and the pool member.
type ServiceAccountBindingSpec struct {
	// ServiceAccountName is the service account, in the same namespace.
	ServiceAccountName string `json:"serviceAccountName" protobuf:"bytes,1,opt,name=serviceAccountName"`
	// PoolMemberRef is the pool member whose environment the account may use.
	PoolMemberRef ObjectReference `json:"poolMemberRef" protobuf:"bytes,2,opt,name=poolMemberRef"`
	// EnableIAMAccountCreation requests an account in the pool member's own identity system. Pool
	// members without one ignore it.
	// +optional
	EnableIAMAccountCreation bool `json:"enableIAMAccountCreation,omitempty" protobuf:"varint,3,opt,name=enableIAMAccountCreation"`
	// AWSAssumeRoleARNs are the roles that the account's workloads may assume on AWS, at most 64.
	// +optional
	// +listType=atomic
	AWSAssumeRoleARNs []string `json:"awsAssumeRoleARNs,omitempty" protobuf:"bytes,4,rep,name=awsAssumeRoleARNs"`
}

// ServiceAccountBindingStatus is the state of a service account binding.
type ServiceAccountBindingStatus struct {
	// Conditions has IAMAccountReady first and Ready last.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,1,rep,name=conditions"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ServiceAccountBindingList is a list of service account bindings.
type ServiceAccountBindingList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the bindings.
	Items []ServiceAccountBinding `json:"items" protobuf:"bytes,2,rep,name=items"`
}
