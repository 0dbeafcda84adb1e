// Package v1alpha1 holds the resource types of the API group cloud.vendor.io: accounts, users,
// keys, instances, clusters, roles and pools. Users write the desired state to spec; the service
// reports the current state in status.
//
// The package owns the field names, their documentation (kubectl explain prints it) and the markers
// for server-side apply. It does not own defaults and validation, which are in
// internal/controlplane/kinds and internal/controlplane/validation. It imports nothing of
// internal/, so that clients can use the types.
//
// Protobuf field numbers are part of the storage format: never change or reuse one.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.vendor.cloud.v1alpha1
// +k8s:protobuf-gen=package
// +groupName=cloud.vendor.io
// +groupGoName=Cloud
package v1alpha1
