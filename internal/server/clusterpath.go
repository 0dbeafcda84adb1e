package server

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"freshet/internal/base/web"
	"freshet/internal/controlplane/pools"
	"freshet/internal/dataplane"
	"freshet/internal/surfaces/pipeline"
)

// clusterPattern is where a cluster answers without a name of its own
// (docs/spec/resources.md#addresses).
const clusterPattern = pools.PathPrefix + "/{organization}/{cluster}/..."

// clusterPath takes the name of a cluster from the beginning of a path and hands
// the rest to that cluster's surfaces. They find the cluster with findCluster,
// and see and answer everything else as they do by host; there is nothing but
// them behind it.
type clusterPath struct{ surfaces http.Handler }

// clusterName is the cluster that a path names.
type clusterName struct{ organization, cluster string }

type clusterNameKey struct{}

// ServeHTTP implements http.Handler.
func (p clusterPath) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var path web.Path
	path.Parse(r.URL)
	ctx := context.WithValue(r.Context(), clusterNameKey{}, clusterName{path.Segment(1), path.Segment(2)})
	r = r.WithContext(ctx) // a copy
	r.URL = withoutSegments(r.URL, 3)
	p.surfaces.ServeHTTP(w, r)
}

// findCluster returns the cluster that a request is for: the one that its path
// names, whatever its host, or else the one at its host. Why there is none is for
// callers of the organization only.
func findCluster(plane *dataplane.Plane, r *http.Request) (*dataplane.Cluster, error) {
	if name, ok := r.Context().Value(clusterNameKey{}).(clusterName); ok {
		c, err := plane.FindNamed(name.organization, name.cluster)
		return c, undisclosed(name.organization, err)
	}
	return findAtHost(plane, r.Host)
}

// findAtHost returns the cluster at a host.
func findAtHost(plane *dataplane.Plane, host string) (*dataplane.Cluster, error) {
	c, err := plane.Find(host)
	return c, undisclosed(plane.OrganizationAt(host), err)
}

// undisclosed keeps an error from those who are not of an organization. Without one
// there is nothing to keep.
func undisclosed(organization string, err error) error {
	if err == nil || organization == "" {
		return err
	}
	return &pipeline.Undisclosed{Organization: organization, Err: err}
}

// stripSegments hands requests on without the first segments of their path. It
// counts segments and does not compare them, so that it agrees with the router
// on those that are escaped.
func stripSegments(n int, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stripped := *r
		stripped.URL = withoutSegments(r.URL, n)
		next.ServeHTTP(w, &stripped)
	})
}

// withoutSegments is a URL without the first segments of its path, as it was
// sent: what was escaped stays so.
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
