// Package serviceaccount is the kind ServiceAccount: its definition (kind.go), authorization
// (authorize.go), the reconciler that issues credentials once and deletes keys and bindings with
// the account (reconcile.go), and the synchronization with the identity directory (feed.go). The subpackages are
// its subresources: rotation and tokens.
//
// The store's write path updates the directory before a call returns, and the informer updates it
// again for writes of other replicas or of an earlier process. Package identity owns the format of
// credentials; ../apikey and ../serviceaccountbinding own keys and bindings.
package serviceaccount
