package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SelfSubjectRulesReview asks what the caller may do in an organization.
type SelfSubjectRulesReview struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says where.
	// +optional
	Spec SelfSubjectRulesReviewSpec `json:"spec,omitempty"`
	// Status is the answer.
	// +optional
	Status SelfSubjectRulesReviewStatus `json:"status,omitempty"`
}

// SelfSubjectRulesReviewSpec says where the rules are wanted.
type SelfSubjectRulesReviewSpec struct {
	// Namespace is the organization; the caller's own when empty.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Instance leaves out rules that cannot reach this instance.
	// +optional
	Instance string `json:"instance,omitempty"`
	// Cluster leaves out rules that cannot reach this cluster.
	// +optional
	Cluster string `json:"cluster,omitempty"`
}

// SelfSubjectRulesReviewStatus is what the caller may do.
type SelfSubjectRulesReviewStatus struct {
	// ResourceRules are the rules about the resource API, in its own verbs.
	// +listType=atomic
	ResourceRules []ResourceRule `json:"resourceRules"`
	// Rules are all rules, as permissions and where they hold.
	// +listType=atomic
	Rules []PermissionRule `json:"rules"`
	// Incomplete says that resourceRules cannot tell everything: where a rule
	// holds is not always a matter of names. Rules are always complete.
	Incomplete bool `json:"incomplete"`
	// EvaluationError says what of resourceRules is incomplete.
	// +optional
	EvaluationError string `json:"evaluationError,omitempty"`
}

// ResourceRule is a set of verbs on resources.
type ResourceRule struct {
	// Verbs of the resource API: get, list, watch, create, update, patch, delete, deletecollection.
	// +listType=atomic
	Verbs []string `json:"verbs"`
	// APIGroups that the resources are of.
	// +listType=atomic
	// +optional
	APIGroups []string `json:"apiGroups,omitempty"`
	// Resources by their plural name.
	// +listType=atomic
	// +optional
	Resources []string `json:"resources,omitempty"`
	// ResourceNames that the rule holds for; all when empty.
	// +listType=atomic
	// +optional
	ResourceNames []string `json:"resourceNames,omitempty"`
}

// PermissionRule is a set of permissions and where they hold.
type PermissionRule struct {
	// By says what gives the permissions: system administrator, organization
	// administrator, role binding or own account.
	By string `json:"by"`
	// Role of the binding.
	// +optional
	Role string `json:"role,omitempty"`
	// Binding is the RoleBinding's name.
	// +optional
	Binding string `json:"binding,omitempty"`
	// Permissions in the form SERVICE.RESOURCE.VERB.
	// +listType=atomic
	Permissions []string `json:"permissions"`
	// Restrictions of which one has to match; everywhere in the organization
	// when empty.
	// +listType=atomic
	// +optional
	Restrictions []Restriction `json:"restrictions,omitempty"`
	// CEL is a condition that has to hold.
	// +optional
	CEL string `json:"cel,omitempty"`
}

// Restriction names what a rule holds for; what is empty is not restricted. A
// value may end in * for a prefix.
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

// SelfSubjectUserReview asks who the caller is.
type SelfSubjectUserReview struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is empty: the question is always about the caller.
	// +optional
	Spec SelfSubjectUserReviewSpec `json:"spec,omitempty"`
	// Status is the answer.
	// +optional
	Status SelfSubjectUserReviewStatus `json:"status,omitempty"`
}

// SelfSubjectUserReviewSpec is empty.
type SelfSubjectUserReviewSpec struct{}

// SelfSubjectUserReviewStatus is who the caller is.
type SelfSubjectUserReviewStatus struct {
	// Users are the resources that the caller is: one service account or user.
	// +listType=atomic
	Users []UserRef `json:"users"`
	// Principal is the caller's name in audit records and permissions.
	Principal string `json:"principal"`
	// SystemAdministrator says that the caller may do everything everywhere.
	// +optional
	SystemAdministrator bool `json:"systemAdministrator,omitempty"`
	// Administrator says that the caller may do everything in its organization.
	// +optional
	Administrator bool `json:"administrator,omitempty"`
	// APIKey is the key that the caller came with; empty for an access token.
	// +optional
	APIKey string `json:"apiKey,omitempty"`
	// ExpirationTime is when the credential ends.
	// +optional
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`
}

// UserRef names a service account or a user.
type UserRef struct {
	// APIGroup of the resource.
	APIGroup string `json:"apiGroup"`
	// Kind of the resource: ServiceAccount or User.
	Kind string `json:"kind"`
	// Name of the resource.
	Name string `json:"name"`
	// Namespace of the resource.
	Namespace string `json:"namespace"`
	// Organization that the namespace stands for.
	Organization string `json:"organization"`
}
