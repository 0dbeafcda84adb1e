// Package serviceaccount makes service accounts real: credentials once, the
// Ready condition, and an end that takes keys and bindings along.
//
// It also tells identity.Directory about accounts (directory.go): from the
// store's write path, before a call answers, and again from the informer for
// what other replicas or an earlier process wrote. How credentials look is
// identity's business.
package serviceaccount
