package adminapi_test

import (
	"testing"

	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp/brokertest"
	"freshet/internal/surfaces/messageapi"
)

const root = brokertest.Root

// world is brokertest.World with helpers for the tests of this package.
type world struct{ *brokertest.World }

func newWorld(t testing.TB, opts messaging.Options, edits ...func(*messageapi.Options)) *world {
	t.Helper()
	return &world{brokertest.New(t, opts, edits...)}
}

// as returns a world that calls with another token.
func (w *world) as(token string) *world { return &world{w.As(token)} }
