package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterRole is a predefined list of permissions that a RoleBinding can grant. The service creates
// the ClusterRoles; they cannot be changed.
type ClusterRole struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Spec lists the permissions.
	// +optional
	Spec ClusterRoleSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// Status is set by the service.
	// +optional
	Status ClusterRoleStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// ClusterRoleSpec lists permissions.
type ClusterRoleSpec struct {
	// Description is the purpose of the role.
	// +optional
	Description string `json:"description,omitempty" protobuf:"bytes,1,opt,name=description"`
	// Permissions are permissions of the form SERVICE.RESOURCE.VERB.
	// +optional
	// +listType=set
	Permissions []string `json:"permissions,omitempty" protobuf:"bytes,2,rep,name=permissions"`
}

// ClusterRoleStatus is the state of a cluster role.
type ClusterRoleStatus struct {
	// Conditions are the conditions of the role.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,1,rep,name=conditions"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterRoleList is a list of cluster roles.
type ClusterRoleList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the roles.
	Items []ClusterRole `json:"items" protobuf:"bytes,2,rep,name=items"`
}
