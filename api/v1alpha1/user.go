package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// User is a person who belongs to the organization. Its name may be the
// person's e-mail address.
type User struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Spec says who the person is.
	// +optional
	Spec UserSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// Status is set by the service.
	// +optional
	Status UserStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// UserSpec says who the person is.
type UserSpec struct {
	// Email is the person's e-mail address.
	Email string `json:"email" protobuf:"bytes,1,opt,name=email"`
	// Type of the user, for example internal.
	// +optional
	Type string `json:"type,omitempty" protobuf:"bytes,2,opt,name=type"`
	// Name of the person.
	// +optional
	Name *UserName `json:"name,omitempty" protobuf:"bytes,3,opt,name=name"`
	// Invitation is the state of the person's invitation.
	// +optional
	Invitation *UserInvitation `json:"invitation,omitempty" protobuf:"bytes,4,opt,name=invitation"`
}

// UserName is a person's name.
type UserName struct {
	// First name.
	First string `json:"first" protobuf:"bytes,1,opt,name=first"`
	// Last name.
	Last string `json:"last" protobuf:"bytes,2,opt,name=last"`
}

// UserInvitation is the state of an invitation.
type UserInvitation struct {
	// Decision of the person: pending, accepted or declined.
	Decision string `json:"decision" protobuf:"bytes,1,opt,name=decision"`
	// Expiration is when the invitation ends.
	Expiration metav1.Time `json:"expiration" protobuf:"bytes,2,opt,name=expiration"`
}

// UserStatus is what the service made of the user.
type UserStatus struct {
	// Conditions; Ready turns True when the user belongs to the organization.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,1,rep,name=conditions"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// UserList is a list of users.
type UserList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the users.
	Items []User `json:"items" protobuf:"bytes,2,rep,name=items"`
}
