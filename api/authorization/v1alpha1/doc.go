// Package v1alpha1 holds the types of the group authorization.vendor.io: what a
// caller asks about themselves, who am I and what may I do, and the answers.
//
// They are created and never stored. What the permissions are for stands in the
// ClusterRoles of the group cloud.vendor.io next door.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.vendor.authorization.v1alpha1
// +groupName=authorization.vendor.io
package v1alpha1
