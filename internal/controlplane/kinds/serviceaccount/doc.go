// Package serviceaccount is the kind ServiceAccount: what it is and may say
// (kind.go), who may make, end and see one (authorize.go), credentials made
// once and an end that takes keys and bindings along (reconcile.go), and how
// identity hears of it (feed.go).
//
// The directory is told from the store's write path, before a call answers, and
// again from the informer for what other replicas or an earlier process wrote.
// How credentials look is identity's business; keys and bindings live next
// door, in ../apikey and ../serviceaccountbinding.
package serviceaccount
