// Package pools knows the pools and members of the server's configuration
// and decides which member a cluster runs on. The resources Pool and PoolMember
// show the same to users; this is where the decision is made.
package pools

import (
	"fmt"
	"net"
	"net/url"

	"freshet/api/v1alpha1"
)

// Pool is a set of members.
type Pool struct {
	Namespace      string
	Name           string
	Type           string
	DeploymentType string
	Members        []Member
}

// Member is a place where clusters run.
type Member struct {
	Name     string
	Location string
	Engine   string
}

// Plan holds every pool; the first is the default.
type Plan struct {
	Pools  []Pool
	Domain string // under which clusters get their names
	// BaseURL is how clients reach the server: scheme, host and port. It is set
	// once, before clusters are reconciled: a port may be known only when it is
	// open.
	BaseURL string
	// StreamPlain is the address of the stream protocol without TLS, and
	// StreamTLSPort the port with it; "" where it is not served. Set with BaseURL.
	StreamPlain   string
	StreamTLSPort string
	Images        map[string]Images
}

// Images are what a release channel runs.
type Images struct {
	Broker  string
	Storage string
}

// DefaultPool is the pool of instances that name none.
func (p *Plan) DefaultPool() *v1alpha1.ObjectReference {
	if len(p.Pools) == 0 {
		return nil
	}
	return &v1alpha1.ObjectReference{Namespace: p.Pools[0].Namespace, Name: p.Pools[0].Name}
}

// Pool finds a pool by reference.
func (p *Plan) Pool(ref *v1alpha1.ObjectReference) (Pool, bool) {
	if ref == nil {
		return Pool{}, false
	}
	for _, pool := range p.Pools {
		if pool.Name == ref.Name && (ref.Namespace == "" || ref.Namespace == pool.Namespace) {
			return pool, true
		}
	}
	return Pool{}, false
}

// AtLocation picks the member at a location, in the instance's pool when that
// is known and in any pool otherwise.
func (p *Plan) AtLocation(pool *v1alpha1.ObjectReference, location string) (*v1alpha1.ObjectReference, bool) {
	for _, candidate := range p.candidates(pool) {
		for _, m := range candidate.Members {
			if m.Location == location {
				return &v1alpha1.ObjectReference{Namespace: candidate.Namespace, Name: m.Name}, true
			}
		}
	}
	return nil, false
}

// Member finds a member by reference, with its pool.
func (p *Plan) Member(ref *v1alpha1.ObjectReference) (Pool, Member, bool) {
	if ref == nil {
		return Pool{}, Member{}, false
	}
	for _, pool := range p.Pools {
		if ref.Namespace != "" && ref.Namespace != pool.Namespace {
			continue
		}
		for _, m := range pool.Members {
			if m.Name == ref.Name {
				return pool, m, true
			}
		}
	}
	return Pool{}, Member{}, false
}

// Locations lists where clusters can run, for messages.
func (p *Plan) Locations(pool *v1alpha1.ObjectReference) []string {
	var locations []string
	for _, candidate := range p.candidates(pool) {
		for _, m := range candidate.Members {
			locations = append(locations, m.Location)
		}
	}
	return locations
}

func (p *Plan) candidates(ref *v1alpha1.ObjectReference) []Pool {
	if pool, ok := p.Pool(ref); ok {
		return []Pool{pool}
	}
	return p.Pools
}

// Endpoint is the name a cluster answers at.
func (p *Plan) Endpoint(cluster, namespace string) v1alpha1.ServiceEndpoint {
	return v1alpha1.ServiceEndpoint{
		DNSName: fmt.Sprintf("%s.%s.%s", cluster, namespace, p.Domain),
		Type:    "service",
	}
}

// PathPrefix begins the paths at which clusters answer without a name of their
// own: PathPrefix/{organization}/{cluster}/… (docs/spec/resources.md#addresses).
const PathPrefix = "/clusters"

// URLs are how a cluster is reached: at its own name, and at the server's
// address by path.
func (p *Plan) URLs(host, organization, cluster string) (byName, byPath string) {
	base, err := url.Parse(p.BaseURL)
	if err != nil {
		return "", "" // the configuration was checked
	}
	named := url.URL{Scheme: base.Scheme, Host: host}
	if port := base.Port(); port != "" {
		named.Host = net.JoinHostPort(host, port)
	}
	return named.String(), p.BaseURL + PathPrefix + "/" + organization + "/" + cluster
}
