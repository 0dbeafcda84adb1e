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

// Failing is a cluster that this server should serve and cannot.
type Failing struct {
	provision.Spec
	Err error // it can contain names of files
}

// Failing returns the clusters that could not be opened, and those that have failed since.
func (p *Plane) Failing() (list []Failing) {
	dir := p.running.Load()
	for _, failed := range dir.failed {
		list = append(list, Failing{failed.spec, failed.err})
	}
	for _, c := range dir.byUID {
		if err := c.Health(); err != nil {
			list = append(list, Failing{c.Spec, err})
		}
	}
	return list
}

// Problems returns why this server cannot serve a cluster, by the UID of each such cluster. The
// texts are for operators: they can contain names of files.
func (p *Plane) Problems() map[string]string {
	problems := map[string]string{}
	for _, failing := range p.Failing() {
		problems[failing.UID] = failing.Err.Error()
	}
	return problems
}

// NameOf returns organization and name of a cluster that should run, as "acme/prod"; "" if there is
// none with the UID.
func (p *Plane) NameOf(uid string) string {
	dir := p.running.Load()
	if c, ok := dir.byUID[uid]; ok {
		return c.Organization + "/" + c.Name
	}
	if f, ok := dir.failed[uid]; ok {
		return f.spec.Organization + "/" + f.spec.Name
	}
	return ""
}
