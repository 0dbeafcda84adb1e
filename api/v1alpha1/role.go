package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Role is an organization's own list of permissions, which a RoleBinding of the organization can
// grant. A caller who writes a role needs every permission in it, in the whole organization. A
// change is in force for all bindings of the role when the call returns.
type Role struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata. The names of predefined roles are reserved.
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
	// Description is the purpose of the role, at most 1024 characters.
	// +optional
	Description string `json:"description,omitempty" protobuf:"bytes,1,opt,name=description"`
	// Permissions are permissions of the form SERVICE.RESOURCE.VERB, without wildcards. The
	// ClusterRole org-admin lists all permissions.
	// +optional
	// +listType=set
	Permissions []string `json:"permissions,omitempty" protobuf:"bytes,2,rep,name=permissions"`
}

// RoleStatus is the state of a role.
type RoleStatus struct {
	// Conditions has Ready, which is True when the role is in force.
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
