package ensemble

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"freshet/internal/ensemble/bundle"
	"freshet/internal/ensemble/membership"
)

// TestReadingDiscardsIncompleteResponse checks that an incomplete response is discarded, because it could
// list journals without their groups.
func TestReadingDiscardsIncompleteResponse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body             string
		journals, groups int
	}{
		"whole": {`{"journals":[1,2],"groups":{"g":{"state":"Stable","lag":3}}}`, 2, 1},
		"half":  {`{"journals":[1,2],"groups":{"g":{"state":"Stable","lag":"three"}}}`, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, c.body)
			})
			router := &Router{
				Members: networkMembers{Network: otherMember(t, handler)}, Logger: slog.New(slog.DiscardHandler),
			}
			got := router.readingOn(t.Context(), "b", &readingRequest{})
			if len(got.Journals) != c.journals || len(got.Groups) != c.groups {
				t.Errorf("got %+v, want %d journals and %d groups", got, c.journals, c.groups)
			}
		})
	}
}

// networkMembers has only the connections of an ensemble.
type networkMembers struct {
	Members
	*membership.Network
}

// Post implements Members.
func (m networkMembers) Post(ctx context.Context, member, path string, in, out any) error {
	return m.Network.Post(ctx, member, path, in, out)
}

// otherMember starts member b with a handler and returns the network of member a.
func otherMember(t *testing.T, handler http.Handler) *membership.Network {
	t.Helper()
	other := httptest.NewUnstartedServer(handler)
	address := other.Listener.Addr().String()
	made, err := bundle.New("https://freshet.example.com", []bundle.Member{
		{Name: "a", Internal: "127.0.0.1:1", Etcd: address, Log: address},
		{Name: "b", Internal: address, Etcd: address, Log: address},
	}, []byte("keys"))
	if err != nil {
		t.Fatal(err)
	}
	credentials := func(name string) *bundle.Credentials {
		dir := t.TempDir()
		places := bundle.Paths{
			DataDir: dir, CertDir: filepath.Join(dir, "members"), EncryptionKeys: filepath.Join(dir, "encryption.key"),
		}
		part, err := made.Bundle(name, false)
		if err == nil {
			err = part.Install(places)
		}
		if err != nil {
			t.Fatal(err)
		}
		opened, err := bundle.Open(places.CertDir, name)
		if err != nil {
			t.Fatal(err)
		}
		return opened
	}
	other.TLS = membership.ServerTLS(credentials("b"), []string{"a", "b"})
	other.EnableHTTP2 = true
	other.StartTLS()
	t.Cleanup(other.Close)
	network := membership.NewNetwork(credentials("a"), map[string]string{"b": address})
	t.Cleanup(network.Close)
	return network
}
