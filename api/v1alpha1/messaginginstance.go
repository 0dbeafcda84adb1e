package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MessagingInstance is a set of messaging clusters that share a pool, the settings for
// authentication and the audience of tokens.
type MessagingInstance struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Spec is the desired state of the instance.
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

// MessagingInstanceSpec is the desired state of an instance.
type MessagingInstanceSpec struct {
	// AvailabilityMode is zonal (the default) or regional. Cannot be changed.
	// +optional
	AvailabilityMode string `json:"availabilityMode,omitempty" protobuf:"bytes,1,opt,name=availabilityMode"`
	// Plan is deprecated. It is stored without effect.
	// +optional
	Plan string `json:"plan,omitempty" protobuf:"bytes,2,opt,name=plan"`
	// PoolRef is the pool in which the instance's clusters run. The default is the server's first
	// pool. Cannot be changed.
	// +optional
	PoolRef *ObjectReference `json:"poolRef,omitempty" protobuf:"bytes,3,opt,name=poolRef"`
	// Type is standard (the default), dedicated, serverless, byoc, byoc-pro or free (zonal only).
	// Cannot be changed.
	// +optional
	Type string `json:"type,omitempty" protobuf:"bytes,4,opt,name=type"`
	// Auth configures how clients of the instance's clusters authenticate. The default is {apikey:
	// {}}. Access tokens work on every instance. API keys, including those of the whole
	// organization, work only if apikey is present. Otherwise the server rejects them with 401, and
	// no key can be created for the instance. A change is in force when the call returns.
	// +optional
	Auth *InstanceAuth `json:"auth,omitempty" protobuf:"bytes,5,opt,name=auth"`
}

// InstanceAuth configures how clients authenticate. If apikey is present, even as an empty object,
// the server accepts API keys. Access tokens always work.
type InstanceAuth struct {
	// APIKey enables API keys. Without it the server rejects them with 401.
	// +optional
	APIKey *InstanceAuthAPIKey `json:"apikey,omitempty" protobuf:"bytes,1,opt,name=apikey"`
	// OAuth2 configures OAuth 2.0 access tokens, which also work without it.
	// +optional
	OAuth2 *InstanceAuthOAuth2 `json:"oauth2,omitempty" protobuf:"bytes,2,opt,name=oauth2"`
}

// InstanceAuthAPIKey enables API keys. It has no settings.
type InstanceAuthAPIKey struct{}

// InstanceAuthOAuth2 configures access tokens for the instance.
type InstanceAuthOAuth2 struct {
	// TokenLifetimeSeconds is the lifetime of access tokens for this instance in seconds. The
	// default is 86400, the maximum 2592000 (30 days).
	// +optional
	TokenLifetimeSeconds int32 `json:"tokenLifetimeSeconds,omitempty" protobuf:"varint,1,opt,name=tokenLifetimeSeconds"`
}

// MessagingInstanceStatus is the current state of an instance.
type MessagingInstanceStatus struct {
	// Auth describes how clients authenticate. It is null until the instance is set up.
	// +nullable
	Auth *InstanceAuthStatus `json:"auth" protobuf:"bytes,1,opt,name=auth"`
	// ObservedGeneration is the metadata.generation this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,2,opt,name=observedGeneration"`
	// Conditions are SubscriptionReady, ResourceServerReady, ServiceAccountReady and Ready, in this
	// order.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,3,rep,name=conditions"`
}

// InstanceAuthStatus describes how clients authenticate.
type InstanceAuthStatus struct {
	// Type is apikey or oauth2.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type"`
	// OAuth2 has the parameters of a token request.
	// +optional
	OAuth2 *InstanceAuthStatusOAuth2 `json:"oauth2,omitempty" protobuf:"bytes,2,opt,name=oauth2"`
}

// InstanceAuthStatusOAuth2 has the parameters of a token request.
type InstanceAuthStatusOAuth2 struct {
	// IssuerURL is the URL of the token issuer.
	IssuerURL string `json:"issuerURL" protobuf:"bytes,1,opt,name=issuerURL"`
	// Audience is the audience to request.
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
