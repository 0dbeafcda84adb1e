package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of every kind in this package.
const GroupName = "cloud.vendor.io"

// SchemeGroupVersion is the API group and version of every kind in this package.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// Resource qualifies a resource name with the API group.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

var (
	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme registers the kinds in a scheme.
	AddToScheme = schemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, objects()...)
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}

// AddInternalToScheme registers the same Go types as the internal version. There is only one
// version, so no conversion is needed.
func AddInternalToScheme(scheme *runtime.Scheme) error {
	internal := schema.GroupVersion{Group: GroupName, Version: runtime.APIVersionInternal}
	scheme.AddKnownTypes(internal, objects()...)
	return nil
}

func objects() []runtime.Object {
	return []runtime.Object{
		&ServiceAccount{}, &ServiceAccountList{},
		&ServiceAccountBinding{}, &ServiceAccountBindingList{},
		&User{}, &UserList{},
		&MessagingInstance{}, &MessagingInstanceList{},
		&MessagingCluster{}, &MessagingClusterList{},
		&APIKey{}, &APIKeyList{},
		&RoleBinding{}, &RoleBindingList{},
		&Role{}, &RoleList{},
		&ClusterRole{}, &ClusterRoleList{},
		&Pool{}, &PoolList{},
		&PoolMember{}, &PoolMemberList{},
	}
}
