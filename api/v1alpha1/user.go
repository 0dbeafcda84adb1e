package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// User is a person in an organization. Its name may be the person's e-mail address.
type User struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Spec describes the person.
	// +optional
	Spec UserSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// Status is set by the service.
	// +optional
	Status UserStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// UserSpec describes a person.
type UserSpec struct {
	// Email is the person's e-mail address.
	Email string `json:"email" protobuf:"bytes,1,opt,name=email"`
	// Type is the type of the user, for example internal.
	// +optional
	Type string `json:"type,omitempty" protobuf:"bytes,2,opt,name=type"`
	// Name is the person's name.
	// +optional
	Name *UserName `json:"name,omitempty" protobuf:"bytes,3,opt,name=name"`
	// Invitation is the state of the person's invitation.
	// +optional
	Invitation *UserInvitation `json:"invitation,omitempty" protobuf:"bytes,4,opt,name=invitation"`
}

// UserName is a person's name.
type UserName struct {
	// First is the first name.
	First string `json:"first" protobuf:"bytes,1,opt,name=first"`
	// Last is the last name.
	Last string `json:"last" protobuf:"bytes,2,opt,name=last"`
}

// UserInvitation is the state of an invitation.
type UserInvitation struct {
	// Decision is the person's decision: pending, accepted or declined.
	Decision string `json:"decision" protobuf:"bytes,1,opt,name=decision"`
	// Expiration is the time at which the invitation expires.
	Expiration metav1.Time `json:"expiration" protobuf:"bytes,2,opt,name=expiration"`
}

// UserStatus is the state of a user.
type UserStatus struct {
	// Conditions has Active and then Ready. Both are True with reason CanSignIn when the person can
	// sign in.
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
