package dataplane

import (
	"freshet/internal/dataplane/provision"
	"freshet/internal/storage/engine"
)

// failedCluster is why a cluster that should run does not.
type failedCluster struct {
	spec provision.Spec
	err  error
}

// Error says which cluster and why, for the operator.
func (f *failedCluster) Error() string {
	return "cluster " + f.spec.Organization + "/" + f.spec.Name + ": " + f.err.Error()
}

// Unwrap returns what went wrong.
func (f *failedCluster) Unwrap() error { return f.err }

// public is what callers of the cluster hear, who may be anybody: no paths, and not
// that there is no such cluster.
func (f *failedCluster) public() error {
	if told := engine.PublicError(f.err); told != nil {
		return told
	}
	return engine.ErrNotOpen
}

// failedWhere returns a cluster that could not be opened, nil when none fits.
func (d *index) failedWhere(fits func(provision.Spec) bool) *failedCluster {
	for _, f := range d.failed {
		if fits(f.spec) {
			return f
		}
	}
	return nil
}
