package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MessagingInstance is a group of messaging clusters that share a pool, a way
// to authenticate and an audience for tokens.
type MessagingInstance struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Spec is what the instance should be.
	// +optional
	Spec MessagingInstanceSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// Status is set by the service.
	// +optional
	Status MessagingInstanceStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// Availability modes of an instance.
const (
	AvailabilityZonal    = "zonal"
	AvailabilityRegional = "regional"
)

// Types of an instance.
const (
	InstanceStandard   = "standard"
	InstanceDedicated  = "dedicated"
	InstanceServerless = "serverless"
	InstanceBYOC       = "byoc"
	InstanceBYOCPro    = "byoc-pro"
	InstanceFree       = "free"
)

// MessagingInstanceSpec is what the instance should be.
type MessagingInstanceSpec struct {
	// AvailabilityMode is zonal (the default) or regional; cannot be changed.
	// +optional
	AvailabilityMode string `json:"availabilityMode,omitempty" protobuf:"bytes,1,opt,name=availabilityMode"`
	// Plan is deprecated and kept as it was given.
	// +optional
	Plan string `json:"plan,omitempty" protobuf:"bytes,2,opt,name=plan"`
	// PoolRef is the pool of resources the instance's clusters run on; the
	// service's default pool when left out. Cannot be changed.
	// +optional
	PoolRef *ObjectReference `json:"poolRef,omitempty" protobuf:"bytes,3,opt,name=poolRef"`
	// Type is standard (the default), dedicated, serverless, byoc, byoc-pro or
	// free. Cannot be changed.
	// +optional
	Type string `json:"type,omitempty" protobuf:"bytes,4,opt,name=type"`
	// Auth says how clients of the instance's clusters authenticate; {apikey: {}} by
	// default. Access tokens work on every instance. API keys work only where apikey
	// is present: elsewhere they are answered with 401, also those that are good for
	// the whole organization, and no key can be made for the instance. A change is in
	// force when the call returns.
	// +optional
	Auth *InstanceAuth `json:"auth,omitempty" protobuf:"bytes,5,opt,name=auth"`
}

// InstanceAuth says how clients authenticate. The presence of apikey, even of an
// empty one, lets API keys in; access tokens work always.
type InstanceAuth struct {
	// APIKey lets API keys in. Without it they are answered with 401.
	// +optional
	APIKey *InstanceAuthAPIKey `json:"apikey,omitempty" protobuf:"bytes,1,opt,name=apikey"`
	// OAuth2 tunes OAuth 2.0 access tokens, which work with it or without.
	// +optional
	OAuth2 *InstanceAuthOAuth2 `json:"oauth2,omitempty" protobuf:"bytes,2,opt,name=oauth2"`
}

// InstanceAuthAPIKey has no settings.
type InstanceAuthAPIKey struct{}

// InstanceAuthOAuth2 tunes access tokens for the instance.
type InstanceAuthOAuth2 struct {
	// TokenLifetimeSeconds is how long access tokens for this instance live;
	// 86400 by default, at most 2592000 (30 days).
	// +optional
	TokenLifetimeSeconds int32 `json:"tokenLifetimeSeconds,omitempty" protobuf:"varint,1,opt,name=tokenLifetimeSeconds"`
}

// MessagingInstanceStatus is what the service made of the instance.
type MessagingInstanceStatus struct {
	// Auth tells clients how to authenticate; null until the instance is set up.
	// +nullable
	Auth *InstanceAuthStatus `json:"auth" protobuf:"bytes,1,opt,name=auth"`
	// ObservedGeneration is the metadata.generation this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,2,opt,name=observedGeneration"`
	// Conditions: SubscriptionReady, ResourceServerReady, ServiceAccountReady, then Ready.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,3,rep,name=conditions"`
}

// InstanceAuthStatus tells clients how to authenticate.
type InstanceAuthStatus struct {
	// Type is apikey or oauth2.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type"`
	// OAuth2 holds what a client needs to ask for a token.
	// +optional
	OAuth2 *InstanceAuthStatusOAuth2 `json:"oauth2,omitempty" protobuf:"bytes,2,opt,name=oauth2"`
}

// InstanceAuthStatusOAuth2 is what a client needs to ask for a token.
type InstanceAuthStatusOAuth2 struct {
	// IssuerURL is where tokens come from.
	IssuerURL string `json:"issuerURL" protobuf:"bytes,1,opt,name=issuerURL"`
	// Audience to ask for.
	Audience string `json:"audience" protobuf:"bytes,2,opt,name=audience"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MessagingInstanceList is a list of messaging instances.
type MessagingInstanceList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the instances.
	Items []MessagingInstance `json:"items" protobuf:"bytes,2,rep,name=items"`
}
