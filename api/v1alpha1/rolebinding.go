package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RoleBinding grants the permissions of a role to users and service accounts of the organization:
// in the whole organization, or on the resources that a restriction names.
type RoleBinding struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Spec has the subjects, the role and its restriction.
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

// RoleBindingSpec has the subjects, the role and its restriction. At most one of
// resourceNameRestriction, resourceNames and cel may be set. Without any of them the role applies
// to the whole organization.
type RoleBindingSpec struct {
	// Subjects are the users and service accounts that get the role, at most 1000.
	// +optional
	// +listType=atomic
	Subjects []Subject `json:"subjects,omitempty" protobuf:"bytes,1,rep,name=subjects"`
	// RoleRef is the role. Cannot be changed.
	RoleRef RoleRef `json:"roleRef" protobuf:"bytes,2,opt,name=roleRef"`
	// ResourceNameRestriction restricts the role to the resources that it names.
	// +optional
	ResourceNameRestriction *ResourceNameRestriction `json:"resourceNameRestriction,omitempty" protobuf:"bytes,3,opt,name=resourceNameRestriction"`
	// ResourceNames restricts the role to the listed resources, at most 1000. It is deprecated; use
	// resourceNameRestriction.
	// +optional
	// +listType=atomic
	ResourceNames []ResourceName `json:"resourceNames,omitempty" protobuf:"bytes,4,rep,name=resourceNames"`
	// CEL restricts the role to the resources for which an expression over srn is true, for example
	// srn.instance == 'i' && srn.tenant == 't'.
	// +optional
	CEL string `json:"cel,omitempty" protobuf:"bytes,5,opt,name=cel"`
}

// Subject is a user or service account that gets a role.
type Subject struct {
	// APIGroup is the API group of the subject: cloud.vendor.io.
	// +optional
	APIGroup string `json:"apiGroup,omitempty" protobuf:"bytes,1,opt,name=apiGroup"`
	// Kind is User, ServiceAccount or IdentityPool. An IdentityPool is stored without effect.
	Kind string `json:"kind" protobuf:"bytes,2,opt,name=kind"`
	// Name is the name of the subject.
	Name string `json:"name" protobuf:"bytes,3,opt,name=name"`
	// Namespace is the namespace of the subject. It must be empty or the namespace of the binding.
	// +optional
	Namespace string `json:"namespace,omitempty" protobuf:"bytes,4,opt,name=namespace"`
}

// RoleRef names a role.
type RoleRef struct {
	// APIGroup is the API group of the role: cloud.vendor.io.
	// +optional
	APIGroup string `json:"apiGroup,omitempty" protobuf:"bytes,1,opt,name=apiGroup"`
	// Kind is ClusterRole for a predefined role, Role for a role of the organization.
	Kind string `json:"kind" protobuf:"bytes,2,opt,name=kind"`
	// Name is the name of the role.
	Name string `json:"name" protobuf:"bytes,3,opt,name=name"`
}

// ResourceNameRestriction names resources. A value is a name, or a prefix and *; an omitted value
// matches any name.
type ResourceNameRestriction struct {
	// Common restricts by the coordinates that all messaging resources have.
	// +optional
	Common *CommonRestriction `json:"common,omitempty" protobuf:"bytes,1,opt,name=common"`
	// Messaging restricts by topic domain and subscription.
	// +optional
	Messaging *MessagingRestriction `json:"messaging,omitempty" protobuf:"bytes,2,opt,name=messaging"`
	// Schema restricts by subject of the schema registry.
	// +optional
	Schema *SchemaRestriction `json:"schema,omitempty" protobuf:"bytes,3,opt,name=schema"`
	// Cloud restricts by resource of this API.
	// +optional
	Cloud *CloudRestriction `json:"cloud,omitempty" protobuf:"bytes,4,opt,name=cloud"`
}

// CommonRestriction has the coordinates of messaging resources.
type CommonRestriction struct {
	// Organization is the organization to which the role is restricted.
	// +optional
	Organization string `json:"organization,omitempty" protobuf:"bytes,1,opt,name=organization"`
	// Instance is the instance to which the role is restricted.
	// +optional
	Instance string `json:"instance,omitempty" protobuf:"bytes,2,opt,name=instance"`
	// Cluster is the cluster to which the role is restricted.
	// +optional
	Cluster string `json:"cluster,omitempty" protobuf:"bytes,3,opt,name=cluster"`
	// Tenant is the tenant to which the role is restricted.
	// +optional
	Tenant string `json:"tenant,omitempty" protobuf:"bytes,4,opt,name=tenant"`
	// Namespace is the namespace, in the tenant, to which the role is restricted.
	// +optional
	Namespace string `json:"namespace,omitempty" protobuf:"bytes,5,opt,name=namespace"`
	// Topic is the topic to which the role is restricted. allPartition('t') matches t and its
	// partitions.
	// +optional
	Topic string `json:"topic,omitempty" protobuf:"bytes,6,opt,name=topic"`
}

// MessagingRestriction restricts by topic domain and subscription.
type MessagingRestriction struct {
	// Topic restricts by topic domain.
	// +optional
	Topic *TopicRestriction `json:"topic,omitempty" protobuf:"bytes,1,opt,name=topic"`
	// Subscription is the subscription to which the role is restricted.
	// +optional
	Subscription *NameRestriction `json:"subscription,omitempty" protobuf:"bytes,2,opt,name=subscription"`
}

// TopicRestriction restricts by topic domain.
type TopicRestriction struct {
	// Domain is persistent or non-persistent.
	// +optional
	Domain string `json:"domain,omitempty" protobuf:"bytes,1,opt,name=domain"`
}

// NameRestriction restricts to a name.
type NameRestriction struct {
	// Name is the name of the resource.
	// +optional
	Name string `json:"name,omitempty" protobuf:"bytes,1,opt,name=name"`
}

// SchemaRestriction restricts by subject of the schema registry.
type SchemaRestriction struct {
	// Subject is the subject to which the role is restricted.
	// +optional
	Subject string `json:"subject,omitempty" protobuf:"bytes,1,opt,name=subject"`
}

// CloudRestriction restricts by resource of this API.
type CloudRestriction struct {
	// ServiceAccount is the service account to which the role is restricted.
	// +optional
	ServiceAccount *NameRestriction `json:"serviceAccount,omitempty" protobuf:"bytes,1,opt,name=serviceAccount"`
	// APIKey is the API key to which the role is restricted.
	// +optional
	APIKey *NameRestriction `json:"apikey,omitempty" protobuf:"bytes,2,opt,name=apikey"`
	// Secret is the secret to which the role is restricted.
	// +optional
	Secret *NameRestriction `json:"secret,omitempty" protobuf:"bytes,3,opt,name=secret"`
}

// ResourceName is a tuple of names. An omitted value matches any name.
type ResourceName struct {
	// Organization is the organization of the resource.
	// +optional
	Organization string `json:"organization,omitempty" protobuf:"bytes,1,opt,name=organization"`
	// Instance is the instance of the resource.
	// +optional
	Instance string `json:"instance,omitempty" protobuf:"bytes,2,opt,name=instance"`
	// Cluster is the cluster of the resource.
	// +optional
	Cluster string `json:"cluster,omitempty" protobuf:"bytes,3,opt,name=cluster"`
	// Tenant is the tenant of the resource.
	// +optional
	Tenant string `json:"tenant,omitempty" protobuf:"bytes,4,opt,name=tenant"`
	// Namespace is the namespace of the resource, in its tenant.
	// +optional
	Namespace string `json:"namespace,omitempty" protobuf:"bytes,5,opt,name=namespace"`
	// TopicDomain is the topic domain of the resource.
	// +optional
	TopicDomain string `json:"topicDomain,omitempty" protobuf:"bytes,6,opt,name=topicDomain"`
	// TopicName is the topic of the resource.
	// +optional
	TopicName string `json:"topicName,omitempty" protobuf:"bytes,7,opt,name=topicName"`
	// Subscription is the subscription of the resource.
	// +optional
	Subscription string `json:"subscription,omitempty" protobuf:"bytes,8,opt,name=subscription"`
	// ServiceAccount is the service account of the resource.
	// +optional
	ServiceAccount string `json:"serviceAccount,omitempty" protobuf:"bytes,9,opt,name=serviceAccount"`
	// APIKey is the API key of the resource.
	// +optional
	APIKey string `json:"apiKey,omitempty" protobuf:"bytes,10,opt,name=apiKey"`
	// Secret is the secret of the resource.
	// +optional
	Secret string `json:"secret,omitempty" protobuf:"bytes,11,opt,name=secret"`
}

// RoleBindingStatus is the state of a role binding.
type RoleBindingStatus struct {
	// Conditions has Ready, which is True when the binding is in force. It is False with reason
	// RoleNotFound if the role was deleted; the binding then grants nothing.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,1,rep,name=conditions"`
	// FailedClusters are the clusters on which the binding could not be applied.
	// +optional
	// +listType=atomic
	FailedClusters []FailedCluster `json:"failedClusters,omitempty" protobuf:"bytes,2,rep,name=failedClusters"`
	// SyncedClusters maps each cluster to the generation of the binding that is in force there.
	// +optional
	SyncedClusters map[string]int64 `json:"syncedClusters,omitempty" protobuf:"bytes,3,rep,name=syncedClusters"`
}

// FailedCluster is a cluster on which a binding could not be applied.
type FailedCluster struct {
	// Name is the name of the cluster.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// Namespace is the namespace of the cluster.
	Namespace string `json:"namespace" protobuf:"bytes,2,opt,name=namespace"`
	// Reason is the reason of the failure.
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
