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
// FRESHET_URL with FRESHET_TOKEN, or one started here.
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
		target = Target{BaseURL: base, Token: os.Getenv("FRESHET_TOKEN")}
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
	target = Target{BaseURL: server.URL, Token: server.Token}
	code = m.Run()
	return code, server.Stop(30 * time.Second)
}

// TestResources has the conversations of spec 1.
func TestResources(t *testing.T) {
	t.Parallel()
	spec1 := target
	spec1.Vars = Vars{
		"api":          Template("/apis/cloud.vendor.io/v1alpha1"),
		"organization": Template("{{api}}/namespaces/{{ns}}"),
		"items":        Template("{{organization}}/{{resource}}"),
	}
	Folder(t, spec1, "resources")
}
