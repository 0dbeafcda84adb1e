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

// clusterPattern is the path of a cluster on every host (docs/spec/resources.md#addresses).
const clusterPattern = pools.PathPrefix + "/{organization}/{cluster}/..."

// clusterPath removes the prefix with the name of a cluster from a path and calls the surfaces
// of a cluster with the rest. The surfaces get the cluster with findCluster, and work in the
// same way as for a cluster that is addressed by host.
type clusterPath struct{ surfaces http.Handler }

// clusterName is the cluster in a path.
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

// findCluster returns the cluster of a request: the one in its path, or else the one of its
// host. Only callers of the organization may see the error, see undisclosed.
func findCluster(plane *dataplane.Plane, r *http.Request) (*dataplane.Cluster, error) {
	if name, ok := r.Context().Value(clusterNameKey{}).(clusterName); ok {
		c, err := plane.FindNamed(name.organization, name.cluster)
		return c, undisclosedError(name.organization, err)
	}
	return findAtHost(plane, r.Host)
}

// findAtHost returns the cluster of a host.
func findAtHost(plane *dataplane.Plane, host string) (*dataplane.Cluster, error) {
	c, err := plane.Find(host)
	return c, undisclosedError(plane.OrganizationAt(host), err)
}

// undisclosedError wraps an error so that only callers of the organization see it. Without an
// organization it returns the error unchanged.
func undisclosedError(organization string, err error) error {
	if err == nil || organization == "" {
		return err
	}
	return &pipeline.UndisclosedError{Organization: organization, Err: err}
}

// stripSegments returns a handler that removes the first n segments of the path. It counts
// segments and does not compare them, because segments that the router has matched may be
// escaped.
func stripSegments(n int, next http.Handler) http.Handler {
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
