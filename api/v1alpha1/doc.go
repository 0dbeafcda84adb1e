// Package v1alpha1 holds the resource types of the group cloud.vendor.io: what
// a user writes to ask for accounts, keys, instances and clusters, and what the
// service answers in status.
//
// It owns field names, their documentation (kubectl explain prints it) and the
// markers that drive server-side apply. Defaults and rules live in
// internal/controlplane/kinds and internal/controlplane/validation; nothing of
// internal/ is imported here, so clients can use these types.
//
// Protobuf field numbers are storage format: never renumber, never reuse.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.vendor.cloud.v1alpha1
// +k8s:protobuf-gen=package
// +groupName=cloud.vendor.io
// +groupGoName=Cloud
package v1alpha1
