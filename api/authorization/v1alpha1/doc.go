// Package v1alpha1 holds the types of the API group authorization.vendor.io. With them callers
// query their own identity and permissions.
//
// The objects are created and never stored: the response to the create call has the result. Roles
// and role bindings are in freshet/api/v1alpha1; docs/spec/resources.md#roles lists the
// permissions.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.vendor.authorization.v1alpha1
// +groupName=authorization.vendor.io
package v1alpha1
