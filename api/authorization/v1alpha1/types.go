package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SelfSubjectRulesReview returns the permissions of the caller in an organization.
type SelfSubjectRulesReview struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec selects the organization.
	// +optional
	Spec SelfSubjectRulesReviewSpec `json:"spec,omitempty"`
	// Status is the result. The service sets it.
	// +optional
	Status SelfSubjectRulesReviewStatus `json:"status,omitempty"`
}

// SelfSubjectRulesReviewSpec selects the rules to return.
type SelfSubjectRulesReviewSpec struct {
	// Namespace is the organization. The default is the caller's own organization.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Instance is the name of an instance. Rules that cannot apply to it are omitted.
	// +optional
	Instance string `json:"instance,omitempty"`
	// Cluster is the name of a cluster. Rules that cannot apply to it are omitted.
	// +optional
	Cluster string `json:"cluster,omitempty"`
}

// SelfSubjectRulesReviewStatus lists the permissions of the caller.
type SelfSubjectRulesReviewStatus struct {
	// ResourceRules are the rules for the resource API, as verbs and resources.
	// +listType=atomic
	ResourceRules []ResourceRule `json:"resourceRules"`
	// Rules are all rules, as permissions with their restrictions.
	// +listType=atomic
	Rules []PermissionRule `json:"rules"`
	// Incomplete is true if resourceRules cannot express every rule, because some restrictions are
	// not names of resources. The field rules is always complete.
	Incomplete bool `json:"incomplete"`
	// EvaluationError is the reason why resourceRules is incomplete.
	// +optional
	EvaluationError string `json:"evaluationError,omitempty"`
}

// ResourceRule is a set of verbs on resources.
type ResourceRule struct {
	// Verbs are the allowed verbs: get, list, watch, create, update, patch, delete,
	// deletecollection.
	// +listType=atomic
	Verbs []string `json:"verbs"`
	// APIGroups are the API groups of the resources.
	// +listType=atomic
	// +optional
	APIGroups []string `json:"apiGroups,omitempty"`
	// Resources are the plural names of the resources.
	// +listType=atomic
	// +optional
	Resources []string `json:"resources,omitempty"`
	// ResourceNames are the objects that the rule applies to. If the list is empty, it applies to
	// all.
	// +listType=atomic
	// +optional
	ResourceNames []string `json:"resourceNames,omitempty"`
}

// PermissionRule is a set of permissions with their restrictions.
type PermissionRule struct {
	// By is the source of the permissions: system administrator, organization administrator, role
	// binding or own account.
	By string `json:"by"`
	// Role is the name of the role that the binding grants.
	// +optional
	Role string `json:"role,omitempty"`
	// Binding is the name of the RoleBinding.
	// +optional
	Binding string `json:"binding,omitempty"`
	// Permissions are permissions of the form SERVICE.RESOURCE.VERB.
	// +listType=atomic
	Permissions []string `json:"permissions"`
	// Restrictions limit the rule: at least one of them must match. If the list is empty, the rule
	// applies to the whole organization.
	// +listType=atomic
	// +optional
	Restrictions []Restriction `json:"restrictions,omitempty"`
	// CEL is an expression that must be true for the rule to apply.
	// +optional
	CEL string `json:"cel,omitempty"`
}

// Restriction limits a rule to the objects that it names. An empty field matches every name. A
// value that ends in * matches a prefix.
type Restriction struct {
	// +optional
	Organization string `json:"organization,omitempty"`
	// +optional
	Instance string `json:"instance,omitempty"`
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// +optional
	Tenant string `json:"tenant,omitempty"`
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// +optional
	TopicDomain string `json:"topicDomain,omitempty"`
	// +optional
	Topic string `json:"topic,omitempty"`
	// +optional
	Subscription string `json:"subscription,omitempty"`
	// +optional
	Subject string `json:"subject,omitempty"`
	// +optional
	ServiceAccount string `json:"serviceAccount,omitempty"`
	// +optional
	APIKey string `json:"apiKey,omitempty"`
	// +optional
	Secret string `json:"secret,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SelfSubjectUserReview returns the identity of the caller.
type SelfSubjectUserReview struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is empty: the review is always about the caller.
	// +optional
	Spec SelfSubjectUserReviewSpec `json:"spec,omitempty"`
	// Status is the result. The service sets it.
	// +optional
	Status SelfSubjectUserReviewStatus `json:"status,omitempty"`
}

// SelfSubjectUserReviewSpec is empty.
type SelfSubjectUserReviewSpec struct{}

// SelfSubjectUserReviewStatus is the identity of the caller.
type SelfSubjectUserReviewStatus struct {
	// Users has one entry: the service account or user of the caller.
	// +listType=atomic
	Users []UserRef `json:"users"`
	// Principal is the caller's name in audit records and permissions.
	Principal string `json:"principal"`
	// SystemAdministrator is true if the caller has every permission in every organization.
	// +optional
	SystemAdministrator bool `json:"systemAdministrator,omitempty"`
	// Administrator is true if the caller has every permission in its own organization.
	// +optional
	Administrator bool `json:"administrator,omitempty"`
	// APIKey is the name of the API key that the caller used. It is empty for an access token.
	// +optional
	APIKey string `json:"apiKey,omitempty"`
	// ExpirationTime is the time at which the credential expires. It is absent if the credential
	// never expires.
	// +optional
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`
}

// UserRef names a service account or a user.
type UserRef struct {
	// APIGroup is the API group of the resource.
	APIGroup string `json:"apiGroup"`
	// Kind is the kind of the resource: ServiceAccount or User.
	Kind string `json:"kind"`
	// Name is the name of the resource.
	Name string `json:"name"`
	// Namespace is the namespace of the resource.
	Namespace string `json:"namespace"`
	// Organization is the organization; it has the same name as the namespace.
	Organization string `json:"organization"`
}
