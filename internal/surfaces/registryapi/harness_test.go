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

// fixture is everything behind the handler but the engine and the registry,
// which are the real ones: who holds which token, and what they may do.
type fixture struct {
	registry     *schemas.Registry
	honourFormat bool
}

// audiences are those of the one registry there is.
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

// HasNamespace knows public/default and those of team.
func (fixture) HasNamespace(_ context.Context, name names.Namespace) (bool, error) {
	return name == names.PublicDefault || name.Tenant == "team" && (name.Name == "one" || name.Name == "two"), nil
}

// Authenticate knows three tokens.
func (fixture) Authenticate(_ context.Context, token string, given ...string) (*identity.Principal, error) {
	if !slices.Equal(given, audiences) {
		return nil, fmt.Errorf("authenticated for %q, want %q", given, audiences)
	}
	switch token {
	case "admin", "reader", "writer", "importer", "nobody":
		return &identity.Principal{Name: token, Organization: "acme"}, nil
	}
	return nil, errs.New(errs.Unauthenticated, "Token is not valid")
}

// Authorize lets admin do everything; reader and writer live in the namespace
// team/one, where the writer may also register; importer writes everywhere and
// reads nothing.
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

// newServer serves a fresh registry at / and /stream.
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
