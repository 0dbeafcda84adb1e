package clients_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
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

const localToken = "a-key-for-tests"

// target returns the registry under test: the one in the environment, or a local one.
func target(t *testing.T) (url, token string) {
	t.Helper()
	if url := os.Getenv("FRESHET_SERVER"); url != "" {
		return url, os.Getenv("FRESHET_TOKEN")
	}
	e, err := pebbletest.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	j, err := e.Journal(t.Context(), "registry")
	if err != nil {
		t.Fatal(err)
	}
	r, err := schemas.Open(t.Context(), j, schemas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	guard := allowAll{registry: r}
	s := httptest.NewServer(
		registryapi.New(registryapi.Options{
			Resolver: guard,
			Options:  pipeline.Options{Authenticator: guard, Authorizer: guard},
		}))
	t.Cleanup(func() {
		s.Close()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return s.URL, localToken
}

// allowAll accepts localToken and grants its holder all permissions.
type allowAll struct{ registry *schemas.Registry }

func (k allowAll) Resolve(*http.Request) (registryapi.Target, error) {
	return registryapi.Target{Registry: k.registry, Namespaces: k}, nil
}

func (allowAll) HasNamespace(context.Context, names.Namespace) (bool, error) { return true, nil }

func (allowAll) Authenticate(_ context.Context, token string, _ ...string) (*identity.Principal, error) {
	if token != localToken {
		return nil, errs.New(errs.Unauthenticated, "unknown key")
	}
	return &identity.Principal{Name: "test"}, nil
}

func (allowAll) Authorize(context.Context, *identity.Principal, access.Permission,
	access.Scope,
) (access.Decision, error) {
	return access.Decision{Allowed: true}, nil
}
