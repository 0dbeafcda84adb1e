// Package resources reads and writes a server's resources: accounts, keys, roles,
// instances, clusters, and whatever else its resource API serves. It speaks JSON
// and knows no kind by itself: the server says which there are (Kinds), and what an
// Object holds is for the caller to read (Object.Into).
//
//	r := resources.New(c)
//	account, err := r.Get(ctx, resources.Ref{Kind: resources.ServiceAccounts, Organization: "acme", Name: "ci"})
//
// A program that works with many resources and keeps copies of them is better off
// with a Kubernetes client, which works here as it is.
package resources

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"

	"freshet/client"
)

// Kind is a kind of resource: what is needed to name it in a call, and what people
// call it.
type Kind struct {
	Group, Version string
	// Resource is its name in paths, the plural; Kind the one in objects.
	Resource, Kind string
	// Namespaced says that each of it belongs to an organization.
	Namespaced bool
	// Singular and ShortNames are other words for it, Categories those for several
	// kinds at once, Verbs what can be done; all are known only from Kinds.
	Singular                      string
	ShortNames, Categories, Verbs []string
}

// The group and version of the service's own kinds.
const (
	Group   = "cloud.vendor.io"
	Version = "v1alpha1"
)

func own(resource, kind string) Kind {
	return Kind{Group: Group, Version: Version, Resource: resource, Kind: kind, Namespaced: true}
}

// The kinds that programs name most.
var (
	ServiceAccounts    = own("serviceaccounts", "ServiceAccount")
	APIKeys            = own("apikeys", "APIKey")
	RoleBindings       = own("rolebindings", "RoleBinding")
	MessagingInstances = own("messaginginstances", "MessagingInstance")
	MessagingClusters  = own("messagingclusters", "MessagingCluster")
	Organizations      = Kind{Version: "v1", Resource: "namespaces", Kind: "Namespace"}
)

// APIVersion is the kind's group and version, as objects have it.
func (k Kind) APIVersion() string {
	if k.Group == "" {
		return k.Version
	}
	return k.Group + "/" + k.Version
}

// Can says whether the server serves a verb of the kind.
func (k Kind) Can(verb string) bool { return slices.Contains(k.Verbs, verb) }

// QualifiedName is the resource with its group, as kubectl prints it.
func (k Kind) QualifiedName() string {
	if k.Group == "" {
		return k.Resource
	}
	return k.Resource + "." + k.Group
}

// path is that of the kind's collection in an organization; "" is all of them.
func (k Kind) path(organization string) string {
	path := "/apis/" + k.Group + "/" + k.Version
	if k.Group == "" {
		path = "/api/" + k.Version
	}
	if k.Namespaced && organization != "" {
		path += "/namespaces/" + url.PathEscape(organization)
	}
	return path + "/" + k.Resource
}

// Ref names one object.
type Ref struct {
	Kind Kind
	// Organization is left out for kinds that belong to none.
	Organization, Name string
}

// String is the object as kubectl names it.
func (r Ref) String() string {
	if r.Kind.Group == "" {
		return singular(r.Kind) + "/" + r.Name
	}
	return singular(r.Kind) + "." + r.Kind.Group + "/" + r.Name
}

func singular(k Kind) string {
	if k.Singular != "" {
		return k.Singular
	}
	return lower(k.Kind)
}

func (r Ref) path() string { return r.Kind.path(r.Organization) + "/" + url.PathEscape(r.Name) }

// Client makes calls to the resource API. It may be used by any number of
// goroutines.
type Client struct {
	conn *client.Client
	// Warn is told what the server has to say about a call that succeeded; nothing
	// when nil. Set it before the first call.
	Warn func(text string)
}

// New makes a Client of a connection. The connection's cluster plays no part.
func New(conn *client.Client) *Client { return &Client{conn: conn} }

// do makes a call and passes warnings on.
func (c *Client) do(ctx context.Context, r *client.Request) (*client.Response, error) {
	response, err := c.conn.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	c.warn(response.Header)
	return response, nil
}

// warning is the form of a Warning header: 299 - "text".
var warning = regexp.MustCompile(`^\s*\d{3} \S+ "((?:[^"\\]|\\.)*)"`)

var escaped = regexp.MustCompile(`\\(.)`)

func (c *Client) warn(header http.Header) {
	if c.Warn == nil {
		return
	}
	for _, value := range header.Values("Warning") {
		if found := warning.FindStringSubmatch(value); found != nil {
			c.Warn(escaped.ReplaceAllString(found[1], "$1"))
		}
	}
}
