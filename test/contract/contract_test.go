package contract

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"freshet/test/testserver"
)

// target is the server that the conversations are had with: that of
// FRESHET_URL, with FRESHET_TOKEN, FRESHET_CLIENT_ID and FRESHET_CLIENT_SECRET
// of its administrator, or one started here.
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
	// Conversations wait more than they compute.
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		return 0, err
	}
	if base := os.Getenv("FRESHET_URL"); base != "" {
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

// TestResources has the conversations of docs/spec/resources.md.
func TestResources(t *testing.T) {
	t.Parallel()
	Folder(t, target, "resources")
}

// TestTokens has those of docs/spec/resources.md#authentication.
func TestTokens(t *testing.T) {
	t.Parallel()
	Folder(t, target, "tokens")
}

// TestIdentity has those about roles, reviews and the audit trail.
func TestIdentity(t *testing.T) {
	t.Parallel()
	Folder(t, target, "identity")
}

// TestMessages has the conversations of docs/spec/messages.md.
func TestMessages(t *testing.T) {
	t.Parallel()
	Folder(t, target, "messages")
}

// byPath is the default cluster at its path (docs/spec/resources.md#addresses).
func byPath() Target {
	at := target
	at.BaseURL += "/clusters/default/default"
	return at
}

// TestMessagesByPath has the conversations about messages once more, by path.
func TestMessagesByPath(t *testing.T) {
	t.Parallel()
	Folder(t, byPath(), "messages")
}

// TestRegistryByPath has those about the registry once more, by path.
func TestRegistryByPath(t *testing.T) {
	t.Parallel()
	Folder(t, byPath(), "registry")
}

// TestRegistry has the conversations of docs/spec/registry.md.
func TestRegistry(t *testing.T) {
	t.Parallel()
	Folder(t, target, "registry")
}
