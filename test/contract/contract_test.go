package contract

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"freshet/test/parallel"
	"freshet/test/testserver"
)

// target is the server under test: the one at FRESHET_SERVER with the administrator
// credentials in FRESHET_TOKEN, FRESHET_CLIENT_ID and FRESHET_CLIENT_SECRET, or a server
// that this test starts.
var target Target

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	// Conversations mostly wait, so more of them run in parallel than there are CPUs.
	parallel.Set(16)
	if base := os.Getenv("FRESHET_SERVER"); base != "" {
		target = newTarget(base, os.Getenv("FRESHET_TOKEN"), os.Getenv("FRESHET_CLIENT_ID"),
			os.Getenv("FRESHET_CLIENT_SECRET"))
		return m.Run(), nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "freshet-contract-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binary, err := testserver.Binary(ctx, dir)
	if err != nil {
		return 0, err
	}
	server, err := testserver.Start(ctx, binary, dir, testserver.Options{})
	if err != nil {
		return 0, err
	}
	target = newTarget(server.URL, server.Token, server.ClientID, server.ClientSecret)
	code = m.Run()
	return code, server.Stop(30 * time.Second)
}

func newTarget(base, token, clientID, clientSecret string) Target {
	return Target{BaseURL: base, Token: token, Vars: Vars{
		"client_id":     clientID,
		"client_secret": clientSecret,
		"api":           Template("/apis/cloud.vendor.io/v1alpha1"),
		"organization":  Template("{{api}}/namespaces/{{ns}}"),
		"items":         Template("{{organization}}/{{resource}}"),
	}}
}

// TestResources runs the conversations of docs/spec/resources.md.
func TestResources(t *testing.T) {
	t.Parallel()
	Folder(t, target, "resources")
}

// TestTokens runs the conversations of docs/spec/resources.md#authentication.
func TestTokens(t *testing.T) {
	t.Parallel()
	Folder(t, target, "tokens")
}

// TestIdentity runs the conversations about roles, reviews and the audit trail.
func TestIdentity(t *testing.T) {
	t.Parallel()
	Folder(t, target, "identity")
}

// TestMessages runs the conversations of docs/spec/messages.md.
func TestMessages(t *testing.T) {
	t.Parallel()
	Folder(t, target, "messages")
}

// byPath returns the default cluster addressed by its path (docs/spec/resources.md#addresses).
func byPath() Target {
	at := target
	at.BaseURL += "/clusters/default/default"
	return at
}

// TestMessagesByPath runs the conversations about messages with the cluster addressed by path.
func TestMessagesByPath(t *testing.T) {
	t.Parallel()
	Folder(t, byPath(), "messages")
}

// TestRegistryByPath runs the conversations about the registry with the cluster addressed by path.
func TestRegistryByPath(t *testing.T) {
	t.Parallel()
	Folder(t, byPath(), "registry")
}

// TestRegistry runs the conversations of docs/spec/registry.md.
func TestRegistry(t *testing.T) {
	t.Parallel()
	Folder(t, target, "registry")
}
