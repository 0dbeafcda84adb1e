package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Role is an organization's own list of permissions that a RoleBinding of the
// organization can give. Whoever writes one needs every permission in it, in the
// whole organization. A change is in force at once, for everybody who has the role.
type Role struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata. The names of predefined roles are taken.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Spec lists the permissions.
	// +optional
	Spec RoleSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// Status is set by the service.
	// +optional
	Status RoleStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// RoleSpec lists permissions.
type RoleSpec struct {
	// Description of what the role is for, at most 1024 characters.
	// +optional
	Description string `json:"description,omitempty" protobuf:"bytes,1,opt,name=description"`
	// Permissions in the form SERVICE.RESOURCE.VERB, each spelt out; those of the
	// ClusterRole org-admin are all there are.
	// +optional
	// +listType=set
	Permissions []string `json:"permissions,omitempty" protobuf:"bytes,2,rep,name=permissions"`
}

// RoleStatus is what the service says about the role.
type RoleStatus struct {
	// Conditions; Ready turns True when the role is in force.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,1,rep,name=conditions"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RoleList is a list of roles.
type RoleList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the roles.
	Items []Role `json:"items" protobuf:"bytes,2,rep,name=items"`
}
