package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RoleBinding gives the permissions of a role to users and service accounts of
// the organization, everywhere or on the resources a restriction names.
type RoleBinding struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Spec says who gets which role on what.
	// +optional
	Spec RoleBindingSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// Status is set by the service.
	// +optional
	Status RoleBindingStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// Kinds of subjects.
const (
	SubjectUser           = "User"
	SubjectServiceAccount = "ServiceAccount"
	SubjectIdentityPool   = "IdentityPool"
)

// RoleBindingSpec says who gets which role on what. At most one of
// resourceNameRestriction, resourceNames and cel may be set.
type RoleBindingSpec struct {
	// Subjects get the role.
	// +optional
	// +listType=atomic
	Subjects []Subject `json:"subjects,omitempty" protobuf:"bytes,1,rep,name=subjects"`
	// RoleRef is the role.
	RoleRef RoleRef `json:"roleRef" protobuf:"bytes,2,opt,name=roleRef"`
	// ResourceNameRestriction narrows the role to the resources it names.
	// +optional
	ResourceNameRestriction *ResourceNameRestriction `json:"resourceNameRestriction,omitempty" protobuf:"bytes,3,opt,name=resourceNameRestriction"`
	// ResourceNames narrows the role to any of the resources listed; deprecated,
	// use resourceNameRestriction.
	// +optional
	// +listType=atomic
	ResourceNames []ResourceName `json:"resourceNames,omitempty" protobuf:"bytes,4,rep,name=resourceNames"`
	// CEL narrows the role by an expression over srn, for example
	// srn.instance == 'i' && srn.tenant == 't'.
	// +optional
	CEL string `json:"cel,omitempty" protobuf:"bytes,5,opt,name=cel"`
}

// Subject is who gets a role.
type Subject struct {
	// APIGroup of the subject: cloud.vendor.io.
	// +optional
	APIGroup string `json:"apiGroup,omitempty" protobuf:"bytes,1,opt,name=apiGroup"`
	// Kind is User or ServiceAccount.
	Kind string `json:"kind" protobuf:"bytes,2,opt,name=kind"`
	// Name of the subject.
	Name string `json:"name" protobuf:"bytes,3,opt,name=name"`
	// Namespace of the subject; the binding's own when empty.
	// +optional
	Namespace string `json:"namespace,omitempty" protobuf:"bytes,4,opt,name=namespace"`
}

// RoleRef names a role.
type RoleRef struct {
	// APIGroup of the role: cloud.vendor.io.
	// +optional
	APIGroup string `json:"apiGroup,omitempty" protobuf:"bytes,1,opt,name=apiGroup"`
	// Kind is ClusterRole for a predefined role, Role for one of the organization.
	Kind string `json:"kind" protobuf:"bytes,2,opt,name=kind"`
	// Name of the role.
	Name string `json:"name" protobuf:"bytes,3,opt,name=name"`
}

// ResourceNameRestriction names resources; what is left out means any.
type ResourceNameRestriction struct {
	// Common coordinates.
	// +optional
	Common *CommonRestriction `json:"common,omitempty" protobuf:"bytes,1,opt,name=common"`
	// Messaging narrows by topic domain and subscription.
	// +optional
	Messaging *MessagingRestriction `json:"messaging,omitempty" protobuf:"bytes,2,opt,name=messaging"`
	// Schema narrows by subject of the schema registry.
	// +optional
	Schema *SchemaRestriction `json:"schema,omitempty" protobuf:"bytes,3,opt,name=schema"`
	// Cloud narrows by resource of this API.
	// +optional
	Cloud *CloudRestriction `json:"cloud,omitempty" protobuf:"bytes,4,opt,name=cloud"`
}

// CommonRestriction holds the coordinates of messaging resources.
type CommonRestriction struct {
	// Organization that the role is narrowed to.
	// +optional
	Organization string `json:"organization,omitempty" protobuf:"bytes,1,opt,name=organization"`
	// Instance that the role is narrowed to.
	// +optional
	Instance string `json:"instance,omitempty" protobuf:"bytes,2,opt,name=instance"`
	// Cluster that the role is narrowed to.
	// +optional
	Cluster string `json:"cluster,omitempty" protobuf:"bytes,3,opt,name=cluster"`
	// Tenant that the role is narrowed to.
	// +optional
	Tenant string `json:"tenant,omitempty" protobuf:"bytes,4,opt,name=tenant"`
	// Namespace of the tenant that the role is narrowed to.
	// +optional
	Namespace string `json:"namespace,omitempty" protobuf:"bytes,5,opt,name=namespace"`
	// Topic that the role is narrowed to; allPartition('t') covers t and its partitions.
	// +optional
	Topic string `json:"topic,omitempty" protobuf:"bytes,6,opt,name=topic"`
}

// MessagingRestriction narrows by topic domain and subscription.
type MessagingRestriction struct {
	// Topic narrows by domain.
	// +optional
	Topic *TopicRestriction `json:"topic,omitempty" protobuf:"bytes,1,opt,name=topic"`
	// Subscription that the role is narrowed to.
	// +optional
	Subscription *NameRestriction `json:"subscription,omitempty" protobuf:"bytes,2,opt,name=subscription"`
}

// TopicRestriction narrows by topic domain.
type TopicRestriction struct {
	// Domain is persistent or non-persistent.
	// +optional
	Domain string `json:"domain,omitempty" protobuf:"bytes,1,opt,name=domain"`
}

// NameRestriction narrows to a name.
type NameRestriction struct {
	// Name of the resource.
	// +optional
	Name string `json:"name,omitempty" protobuf:"bytes,1,opt,name=name"`
}

// SchemaRestriction narrows by subject.
type SchemaRestriction struct {
	// Subject of the schema registry.
	// +optional
	Subject string `json:"subject,omitempty" protobuf:"bytes,1,opt,name=subject"`
}

// CloudRestriction narrows by resource of this API.
type CloudRestriction struct {
	// ServiceAccount that the role is narrowed to.
	// +optional
	ServiceAccount *NameRestriction `json:"serviceAccount,omitempty" protobuf:"bytes,1,opt,name=serviceAccount"`
	// APIKey that the role is narrowed to.
	// +optional
	APIKey *NameRestriction `json:"apikey,omitempty" protobuf:"bytes,2,opt,name=apikey"`
	// Secret that the role is narrowed to.
	// +optional
	Secret *NameRestriction `json:"secret,omitempty" protobuf:"bytes,3,opt,name=secret"`
}

// ResourceName is one tuple of names; what is left out means any.
type ResourceName struct {
	// Organization of the resource.
	// +optional
	Organization string `json:"organization,omitempty" protobuf:"bytes,1,opt,name=organization"`
	// Instance of the resource.
	// +optional
	Instance string `json:"instance,omitempty" protobuf:"bytes,2,opt,name=instance"`
	// Cluster of the resource.
	// +optional
	Cluster string `json:"cluster,omitempty" protobuf:"bytes,3,opt,name=cluster"`
	// Tenant of the resource.
	// +optional
	Tenant string `json:"tenant,omitempty" protobuf:"bytes,4,opt,name=tenant"`
	// Namespace of the resource.
	// +optional
	Namespace string `json:"namespace,omitempty" protobuf:"bytes,5,opt,name=namespace"`
	// TopicDomain of the resource.
	// +optional
	TopicDomain string `json:"topicDomain,omitempty" protobuf:"bytes,6,opt,name=topicDomain"`
	// TopicName of the resource.
	// +optional
	TopicName string `json:"topicName,omitempty" protobuf:"bytes,7,opt,name=topicName"`
	// Subscription of the resource.
	// +optional
	Subscription string `json:"subscription,omitempty" protobuf:"bytes,8,opt,name=subscription"`
	// ServiceAccount of the resource.
	// +optional
	ServiceAccount string `json:"serviceAccount,omitempty" protobuf:"bytes,9,opt,name=serviceAccount"`
	// APIKey of the resource.
	// +optional
	APIKey string `json:"apiKey,omitempty" protobuf:"bytes,10,opt,name=apiKey"`
	// Secret of the resource.
	// +optional
	Secret string `json:"secret,omitempty" protobuf:"bytes,11,opt,name=secret"`
}

// RoleBindingStatus is what the service made of the binding.
type RoleBindingStatus struct {
	// Conditions; Ready turns True when the binding is in force, and False with
	// reason RoleNotFound when its role was deleted: it then grants nothing.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,1,rep,name=conditions"`
	// FailedClusters where the binding could not be applied.
	// +optional
	// +listType=atomic
	FailedClusters []FailedCluster `json:"failedClusters,omitempty" protobuf:"bytes,2,rep,name=failedClusters"`
	// SyncedClusters maps clusters to the generation of the binding in force there.
	// +optional
	SyncedClusters map[string]int64 `json:"syncedClusters,omitempty" protobuf:"bytes,3,rep,name=syncedClusters"`
}

// FailedCluster is a cluster where a binding could not be applied.
type FailedCluster struct {
	// Name of the cluster.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// Namespace of the cluster.
	Namespace string `json:"namespace" protobuf:"bytes,2,opt,name=namespace"`
	// Reason why.
	Reason string `json:"reason" protobuf:"bytes,3,opt,name=reason"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RoleBindingList is a list of role bindings.
type RoleBindingList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// Items are the bindings.
	Items []RoleBinding `json:"items" protobuf:"bytes,2,rep,name=items"`
}
