package registryapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/registry/schemas"
	"freshet/internal/storage/pebble/pebbletest"
	"freshet/internal/surfaces/pipeline"
	"freshet/internal/surfaces/registryapi"
)

// fixture implements the resolver, the authenticator and the authorizer of the tests.
// The engine and the registry are real.
type fixture struct {
	registry     *schemas.Registry
	honourFormat bool
}

// audiences are the audiences of the tests' registry.
var audiences = []string{"east"}

func (h fixture) Resolve(r *http.Request) (registryapi.Target, error) {
	if strings.HasPrefix(r.Host, "nowhere.") {
		return registryapi.Target{}, errs.New(errs.NotFound, "no cluster answers to this host")
	}
	return registryapi.Target{
		Registry:   h.registry,
		Scope:      access.Scope{Organization: "acme", Instance: "main", Cluster: "east"},
		Audiences:  audiences,
		Namespaces: h,

		HonourFormat: h.honourFormat,
	}, nil
}

// HasNamespace reports true for public/default, team/one and team/two.
func (fixture) HasNamespace(_ context.Context, name names.Namespace) (bool, error) {
	return name == names.PublicDefault || name.Tenant == "team" && (name.Name == "one" || name.Name == "two"), nil
}

// Authenticate accepts five tokens.
func (fixture) Authenticate(_ context.Context, token string, requested ...string) (*identity.Principal, error) {
	if !slices.Equal(requested, audiences) {
		return nil, fmt.Errorf("authenticated for %q, want %q", requested, audiences)
	}
	switch token {
	case "admin", "reader", "writer", "importer", "nobody":
		return &identity.Principal{Name: token, Organization: "acme"}, nil
	}
	return nil, errs.New(errs.Unauthenticated, "Token is not valid")
}

// Authorize gives admin all permissions. reader and writer have permissions in the
// namespace team/one, where writer may also register. importer may write everywhere but
// read nothing.
func (fixture) Authorize(_ context.Context, p *identity.Principal, permission access.Permission,
	scope access.Scope,
) (access.Decision, error) {
	allowed := access.Decision{Allowed: true, By: access.ByBinding, Role: p.Name, Binding: "house-rules"}
	verb := permission[strings.LastIndexByte(string(permission), '.')+1:]
	reads := verb == "describe" || verb == "list"
	here := scope.Tenant == "team" && scope.Namespace == "one"
	switch {
	case p.Name == "admin":
		return allowed, nil
	case p.Name == "reader" && here && reads:
		return allowed, nil
	case p.Name == "writer" && here && (reads || verb == "create"):
		return allowed, nil
	case p.Name == "importer" && (verb == "create" || verb == "update"):
		return allowed, nil
	}
	return access.Decision{}, errs.New(errs.Denied, "no")
}

func newRegistry(t testing.TB, opts schemas.Options) *schemas.Registry {
	t.Helper()
	e, err := pebbletest.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	j, err := e.Journal(t.Context(), "registry")
	if err != nil {
		t.Fatal(err)
	}
	r, err := schemas.Open(t.Context(), j, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func newHandler(registry *schemas.Registry) http.Handler {
	h := fixture{registry: registry}
	return registryapi.New(registryapi.Options{
		Resolver: h,
		Options:  pipeline.Options{Authenticator: h, Authorizer: h},
	})
}

// newServer serves an empty registry at / and /stream.
func newServer(t testing.TB, opts schemas.Options) *httptest.Server {
	t.Helper()
	handler := newHandler(newRegistry(t, opts))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/stream/") {
			http.StripPrefix("/stream", handler).ServeHTTP(w, r)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}
