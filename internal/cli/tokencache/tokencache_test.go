package tokencache_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"freshet.dev/client"
	"freshet/internal/cli/tokencache"
)

// endpoint is a TokenSource that counts its calls.
type endpoint struct {
	calls int
	life  time.Duration
}

func (e *endpoint) Token(context.Context) (client.Token, error) {
	e.calls++
	return client.Token{Value: fmt.Sprintf("t%d", e.calls), Expiry: time.Now().Add(e.life)}, nil
}

func TestTokensAreCached(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "tokens")
	e := &endpoint{life: time.Hour}
	token := func(key ...string) string {
		t.Helper()
		got, err := tokencache.New(e, dir, key...).Token(t.Context()) // each command opens its own cache
		if err != nil {
			t.Fatal(err)
		}
		return got.Value
	}
	if a, b := token("x", "y"), token("x", "y"); a != "t1" || b != "t1" {
		t.Errorf("got %s and %s, want t1 twice", a, b)
	}
	if got := token("xy"); got != "t2" {
		t.Errorf("another key: got %s, want another token", got)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("cached %v, %v; want 2 files", files, err)
	}
	for _, file := range append(files, dir) {
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v; want access only for its owner", file, info, err)
		}
	}
	source, ok := tokencache.New(e, dir, "x", "y").(client.Invalidator)
	if !ok {
		t.Fatal("the source is not an Invalidator")
	}
	source.Invalidate(client.Token{Value: "t1"})
	if got := token("x", "y"); got != "t3" {
		t.Errorf("after Invalidate: got %s, want a new token", got)
	}
	if err := tokencache.Clear(dir); err != nil {
		t.Fatal(err)
	}
	if got := token("x", "y"); got != "t4" {
		t.Errorf("after Clear: got %s, want a new token", got)
	}
}

func TestExpiringTokensAreNotUsed(t *testing.T) {
	t.Parallel()
	e := &endpoint{life: 30 * time.Second}
	dir := t.TempDir()
	for want := 1; want <= 2; want++ {
		if _, err := tokencache.New(e, dir, "k").Token(t.Context()); err != nil || e.calls != want {
			t.Errorf("requested %d times, %v; want %d", e.calls, err, want)
		}
	}
	// A cache that cannot be written is ignored.
	if _, err := tokencache.New(e, filepath.Join(os.DevNull, "x"), "k").Token(t.Context()); err != nil {
		t.Errorf("no cache: %v", err)
	}
}
