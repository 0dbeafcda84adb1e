// Package clusterpath finds the cluster of a request over HTTP: the one in its path, which is the
// same on every host (docs/spec/resources.md#addresses), or else the one of its host. The router of
// package server mounts Handler at the prefix of these paths; the surfaces of a cluster then get the
// rest of the path, and work in the same way as for a cluster that is addressed by host.
package clusterpath

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"freshet/internal/base/web"
	"freshet/internal/surfaces/pipeline"
)

// Handler removes the prefix with the name of a cluster, /clusters/{organization}/{cluster}, from a
// path and calls the surfaces of a cluster with the rest.
type Handler struct{ Surfaces http.Handler }

// name is the cluster in a path.
type name struct{ organization, cluster string }

type nameKey struct{}

// ServeHTTP implements http.Handler.
func (h Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var path web.Path
	path.Parse(r.URL)
	r = r.WithContext(context.WithValue(r.Context(), nameKey{}, name{path.Segment(1), path.Segment(2)})) // a copy
	r.URL = withoutSegments(r.URL, 3)
	h.Surfaces.ServeHTTP(w, r)
}

// Clusters finds clusters, as dataplane.Plane does.
type Clusters[C any] interface {
	Find(host string) (C, error)
	FindNamed(organization, cluster string) (C, error)
	// OrganizationAt returns the organization of the cluster that a host would name.
	OrganizationAt(host string) string
}

// Find returns the cluster of a request: the one in its path, or else the one of its host. Only
// callers of the organization may see the error, see Undisclosed.
func Find[C any](clusters Clusters[C], r *http.Request) (C, error) {
	if at, ok := r.Context().Value(nameKey{}).(name); ok {
		return FindNamed(clusters, at.organization, at.cluster)
	}
	return FindAtHost(clusters, r.Host)
}

// FindNamed returns the cluster with a name in an organization, with errors like those of Find.
func FindNamed[C any](clusters Clusters[C], organization, cluster string) (C, error) {
	c, err := clusters.FindNamed(organization, cluster)
	return c, Undisclosed(organization, err)
}

// FindAtHost returns the cluster of a host, with errors like those of Find.
func FindAtHost[C any](clusters Clusters[C], host string) (C, error) {
	c, err := clusters.Find(host)
	return c, Undisclosed(clusters.OrganizationAt(host), err)
}

// Undisclosed wraps an error so that only callers of the organization see it. Without an
// organization it returns the error unchanged.
func Undisclosed(organization string, err error) error {
	if err == nil || organization == "" {
		return err
	}
	return &pipeline.UndisclosedError{Organization: organization, Err: err}
}

// StripSegments returns a handler that removes the first n segments of the path. It counts
// segments and does not compare them, because segments that the router has matched may be
// escaped.
func StripSegments(n int, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stripped := *r
		stripped.URL = withoutSegments(r.URL, n)
		next.ServeHTTP(w, &stripped)
	})
}

// withoutSegments returns a URL without the first n segments of its path. The rest stays
// escaped as it was sent.
func withoutSegments(u *url.URL, n int) *url.URL {
	out := *u
	out.Path = cutSegments(u.Path, n)
	if u.RawPath == "" {
		return &out
	}
	out.RawPath = cutSegments(u.RawPath, n)
	if path, err := url.PathUnescape(out.RawPath); err == nil { // net/http has checked it
		out.Path = path
	}
	return &out
}

func cutSegments(path string, n int) string {
	path = strings.TrimPrefix(path, "/")
	for range n {
		_, path, _ = strings.Cut(path, "/")
	}
	return "/" + path
}
