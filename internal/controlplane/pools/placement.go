// Package pools contains the pools and pool members of the server's configuration and decides on
// which member a cluster runs. The kinds Pool and PoolMember publish the same data to users.
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

// Member is an environment in which clusters run.
type Member struct {
	Name     string
	Location string
	Engine   string
}

// Plan contains every pool; the first is the default.
type Plan struct {
	Pools  []Pool
	Domain string // parent domain of the clusters' DNS names
	// BaseURL is the scheme, host and port at which clients reach the server. It is set once,
	// before clusters are reconciled, because a port may be known only after it is open.
	BaseURL string
	// KafkaPlain is the address of the Kafka protocol without TLS, and KafkaTLSPort the port with
	// TLS; "" if not served. They are set together with BaseURL.
	KafkaPlain   string
	KafkaTLSPort string
	Images       map[string]Images
}

// Images are the images of a release channel.
type Images struct {
	Broker  string
	Storage string
}

// DefaultPool returns the pool of instances that name none.
func (p *Plan) DefaultPool() *v1alpha1.ObjectReference {
	if len(p.Pools) == 0 {
		return nil
	}
	return &v1alpha1.ObjectReference{Namespace: p.Pools[0].Namespace, Name: p.Pools[0].Name}
}

// Pool returns a pool by reference.
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

// AtLocation returns the member at a location, in the instance's pool if that is known, otherwise
// in any pool.
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

// Member returns a member by reference, with its pool.
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

// Locations lists the locations in which clusters can run, for messages.
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

// Endpoint returns the DNS name of a cluster.
func (p *Plan) Endpoint(cluster, namespace string) v1alpha1.ServiceEndpoint {
	return v1alpha1.ServiceEndpoint{
		DNSName: fmt.Sprintf("%s.%s.%s", cluster, namespace, p.Domain),
		Type:    "service",
	}
}

// PathPrefix is the prefix of the paths that address clusters without a DNS name:
// PathPrefix/{organization}/{cluster}/… (docs/spec/resources.md#addresses).
const PathPrefix = "/clusters"

// URLs returns the base URLs of a cluster: with its own DNS name, and with a path at the server's
// address.
func (p *Plan) URLs(host, organization, cluster string) (byName, byPath string) {
	base, err := url.Parse(p.BaseURL)
	if err != nil {
		return "", "" // the configuration was validated
	}
	named := url.URL{Scheme: base.Scheme, Host: host}
	if port := base.Port(); port != "" {
		named.Host = net.JoinHostPort(host, port)
	}
	return named.String(), p.BaseURL + PathPrefix + "/" + organization + "/" + cluster
}
