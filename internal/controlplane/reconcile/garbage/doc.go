// Package garbage implements the garbage collection of deletions: dependents whose owners no longer
// exist (Background), dependents that must be deleted before their owner (Foreground), owner
// references that must be removed (Orphan), and objects whose grace period has ended.
//
// It handles every kind through metadata informers and depends on none of them. The reconciler of a
// kind tears down what the kind has created, protected by the kind's finalizer; this package
// removes only the two finalizers that the API machinery sets.
package garbage
