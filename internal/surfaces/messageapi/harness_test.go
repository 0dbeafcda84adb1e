package messageapi_test

import (
	"testing"

	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp/brokertest"
	"freshet/internal/surfaces/messageapi"
)

const (
	root         = brokertest.Root
	organization = brokertest.Organization
	instance     = brokertest.Instance
)

var discardLogger = brokertest.DiscardLogger

// harness is brokertest.Harness with helpers for the tests of this package.
type harness struct{ *brokertest.Harness }

func newHarness(t testing.TB, opts messaging.Options, edits ...func(*messageapi.Options)) *harness {
	t.Helper()
	return &harness{brokertest.New(t, opts, edits...)}
}

// as returns a world that calls with another token.
func (w *harness) as(token string) *harness { return &harness{w.WithToken(token)} }
