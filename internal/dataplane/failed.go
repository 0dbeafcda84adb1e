package dataplane

import (
	"freshet/internal/dataplane/provision"
	"freshet/internal/storage/engine"
)

// failedCluster is the error of a cluster that should run and could not be opened.
type failedCluster struct {
	spec provision.Spec
	err  error
	// notOpen is the error for clients unless the cause has one of its own.
	notOpen error
}

// Error returns the cluster and the cause, for the operator.
func (f *failedCluster) Error() string {
	return "cluster " + f.spec.Organization + "/" + f.spec.Name + ": " + f.err.Error()
}

// Unwrap returns the cause.
func (f *failedCluster) Unwrap() error { return f.err }

// publicError returns the error for the cluster's clients. It contains no paths, and does not
// claim that the cluster does not exist.
func (f *failedCluster) publicError() error {
	if publicErr := engine.PublicError(f.err); publicErr != nil {
		return publicErr
	}
	return f.notOpen
}

// findFailed returns a cluster that could not be opened and matches, or nil.
func (d *index) findFailed(fits func(provision.Spec) bool) *failedCluster {
	for _, f := range d.failed {
		if fits(f.spec) {
			return f
		}
	}
	return nil
}
