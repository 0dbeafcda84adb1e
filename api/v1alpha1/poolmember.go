package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PoolMember is a member of a pool: a location with a storage engine. Pool members are defined in
// the server's configuration and cannot be changed through the API.
type PoolMember struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Spec describes the member.
	// +optional
	Spec PoolMemberSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// Status is set by the service.
	// +optional
	Status PoolMemberStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// PoolMemberSpec describes a pool member.
type PoolMemberSpec struct {
	// PoolName is the pool of the member, in the same namespace.
	PoolName string `json:"poolName" protobuf:"bytes,1,opt,name=poolName"`
	// Type is the type of the member's infrastructure, for example generic.
	Type string `json:"type" protobuf:"bytes,2,opt,name=type"`
	// Location is the identifier of the region. Clusters select it with spec.location.
	Location string `json:"location" protobuf:"bytes,3,opt,name=location"`
	// Engine is the storage engine of the member's clusters, for example pebble.
	// +optional
	Engine string `json:"engine,omitempty" protobuf:"bytes,4,opt,name=engine"`
	// Domains are the domains of the clusters' host names.
	// +optional
	// +listType=atomic
	Domains []PoolMemberDomain `json:"domains,omitempty" protobuf:"bytes,5,rep,name=domains"`
}

// PoolMemberDomain is a domain of the clusters' host names.
type PoolMemberDomain struct {
	// Name is the name of the domain.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// Type is service, or empty for an ingress.
	// +optional
	Type string `json:"type,omitempty" protobuf:"bytes,2,opt,name=type"`
}

// PoolMemberStatus is the state of a pool member.
type PoolMemberStatus struct {
	// DeploymentType is the deployment type of the member's pool.
	// +optional
	DeploymentType string `json:"deploymentType,omitempty" protobuf:"bytes,1,opt,name=deploymentType"`
	// ServerVersion is the version of the server that runs on the member.
	// +optional
	ServerVersion string `json:"serverVersion,omitempty" protobuf:"bytes,2,opt,name=serverVersion"`
	// ObservedGeneration is the metadata.generation this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,3,opt,name=observedGeneration"`
	// Conditions are the conditions of the member.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,4,rep,name=conditions"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PoolMemberList is a list of pool members.
type PoolMemberList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the members.
	Items []PoolMember `json:"items" protobuf:"bytes,2,rep,name=items"`
}
