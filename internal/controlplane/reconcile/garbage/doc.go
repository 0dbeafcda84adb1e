// Package garbage collects what deletions leave behind: dependents whose owners
// are gone (Background), dependents that must go before their owner
// (Foreground), ownership that must be forgotten (Orphan), and objects whose
// grace period has ended.
//
// It sees every kind through metadata informers and knows none of them. What a
// kind tears down before it goes is its own reconciler's business, held by the
// kind's finalizer; this package only removes the two finalizers that the
// machinery itself sets.
package garbage
