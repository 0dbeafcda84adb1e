// Package resources is the Go client of the resource API: accounts, keys, roles, instances,
// clusters and all other resources. It uses JSON and does not depend on the types of resources:
// Client.Kinds returns the kinds of the server, and Object.Into decodes an object.
//
//	r := resources.New(c)
//	account, err := r.Get(ctx, resources.Ref{Kind: resources.ServiceAccounts, Organization: "acme", Name: "ci"})
//
// Programs that cache many resources should use a Kubernetes client, which works with the
// resource API without changes.
package resources

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"freshet.dev/client"
)

// Kind is a kind of resource, with its names.
type Kind struct {
	Group, Version string // API group and version
	// Resource is the plural name in paths, Kind the name in objects.
	Resource, Kind string
	// Namespaced means that each object belongs to an organization.
	Namespaced bool
	// Singular and ShortNames are other names of the kind, Categories names of several
	// kinds, Verbs the supported operations. Only Client.Kinds sets them.
	Singular                      string
	ShortNames, Categories, Verbs []string
}

// API group and version of Freshet's kinds.
const (
	Group   = "cloud.vendor.io"
	Version = "v1alpha1"
)

func freshetKind(resource, kind string) Kind {
	return Kind{Group: Group, Version: Version, Resource: resource, Kind: kind, Namespaced: true}
}

// Frequently used kinds.
var (
	ServiceAccounts    = freshetKind("serviceaccounts", "ServiceAccount")
	APIKeys            = freshetKind("apikeys", "APIKey")
	RoleBindings       = freshetKind("rolebindings", "RoleBinding")
	MessagingInstances = freshetKind("messaginginstances", "MessagingInstance")
	MessagingClusters  = freshetKind("messagingclusters", "MessagingCluster")
	Organizations      = Kind{Version: "v1", Resource: "namespaces", Kind: "Namespace"}
)

// APIVersion returns the API group and version in the form of the field apiVersion.
func (k Kind) APIVersion() string {
	if k.Group == "" {
		return k.Version
	}
	return k.Group + "/" + k.Version
}

// Can reports whether the kind supports a verb.
func (k Kind) Can(verb string) bool { return slices.Contains(k.Verbs, verb) }

// QualifiedName returns the resource with its API group, as kubectl prints it.
func (k Kind) QualifiedName() string {
	if k.Group == "" {
		return k.Resource
	}
	return k.Resource + "." + k.Group
}

// path returns the path of the kind's collection in an organization, or in all if it is empty.
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

// Ref identifies one object.
type Ref struct {
	Kind Kind
	// Organization is empty for kinds without an organization.
	Organization, Name string
}

// String returns the name of the object in the form of kubectl.
func (r Ref) String() string {
	if r.Kind.Group == "" {
		return singular(r.Kind) + "/" + r.Name
	}
	return singular(r.Kind) + "." + r.Kind.Group + "/" + r.Name
}

func singular(k Kind) string { return cmp.Or(k.Singular, strings.ToLower(k.Kind)) }

func (r Ref) path() string { return r.Kind.path(r.Organization) + "/" + url.PathEscape(r.Name) }

// Client makes calls to the resource API. It is safe for concurrent use.
type Client struct {
	conn *client.Client
	// Warn is called with the warnings of successful responses. It may be nil. Set it before
	// the first call.
	Warn func(text string)
}

// New returns a Client that uses conn. It ignores the cluster of conn.
func New(conn *client.Client) *Client { return &Client{conn: conn} }

// do makes a call and passes warnings to Warn.
func (c *Client) do(ctx context.Context, r *client.Request) (*client.Response, error) {
	response, err := c.conn.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	c.warn(response.Header)
	return response, nil
}

// warning matches a Warning header: 299 - "text".
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
