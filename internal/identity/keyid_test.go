package identity

import (
	"strings"
	"testing"
	"time"
)

// TestSigningKeyIDsAreNoFlags checks that 'freshet admin signing-key withdraw ID' does not read the id of a key
// as a flag. One random id in 64 would begin with a dash.
func TestSigningKeyIDsAreNoFlags(t *testing.T) {
	t.Parallel()
	for range 500 {
		key, err := newStoredKey(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(key.ID, "-") {
			t.Fatalf("got id %s, want none that begins with a dash", key.ID)
		}
	}
}
