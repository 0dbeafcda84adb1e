package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Pool is a set of pool members on which clusters can run. Pools are defined in the server's
// configuration and cannot be changed through the API.
type Pool struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Spec describes the pool.
	// +optional
	Spec PoolSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// Status is set by the service.
	// +optional
	Status PoolStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// PoolSpec describes a pool.
type PoolSpec struct {
	// Type is the type of the pool's infrastructure, for example generic.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type"`
	// DeploymentType is hosted, managed or managed-pro.
	// +optional
	DeploymentType string `json:"deploymentType,omitempty" protobuf:"bytes,2,opt,name=deploymentType"`
	// Sharing lists the organizations that may use the pool.
	// +optional
	Sharing *PoolSharing `json:"sharing,omitempty" protobuf:"bytes,3,opt,name=sharing"`
}

// PoolSharing lists the organizations that may use a pool.
type PoolSharing struct {
	// Namespaces are the organizations that may use the pool. * means all.
	// +listType=set
	Namespaces []string `json:"namespaces" protobuf:"bytes,1,rep,name=namespaces"`
}

// PoolStatus is the state of a pool.
type PoolStatus struct {
	// Conditions are the conditions of the pool.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,1,rep,name=conditions"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PoolList is a list of pools.
type PoolList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the pools.
	Items []Pool `json:"items" protobuf:"bytes,2,rep,name=items"`
}
