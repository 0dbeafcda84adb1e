package pebble

import (
	"crypto/sha256"
	"errors"
	"strings"
	"testing"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/storage/engine"
)

// sumAll returns the checksum of the whole content, read in parts of limit bytes.
func sumAll(t *testing.T, c *Content, limit int64) (sum string, keys int64) {
	t.Helper()
	h, from := sha256.New(), []byte(nil)
	for {
		last, n, size, err := c.Sum(h, from, limit)
		if err != nil {
			t.Fatalf("sum: got error %v, want none", err)
		}
		keys += n
		if size < limit {
			return string(h.Sum(nil)), keys
		}
		from = append(last, 0)
	}
}

func takeContent(t *testing.T, st *Store) *Content {
	t.Helper()
	c := st.AwaitContent(func([]byte) bool { return false })
	c.Take()
	return c
}

// TestContent checks that the content of a store is taken at the awaited position, stays as it was, has a
// checksum that depends on neither the parts in which it is read nor the position, and does not keep the
// store from being closed.
func TestContent(t *testing.T) {
	dir := t.TempDir()
	st := openCopy(t, dir)
	fillCopy(t, st, "p1")
	c := st.AwaitContent(func(position []byte) bool { return string(position) >= "p2" })
	select {
	case <-c.Taken():
		t.Fatal("got a content before its position, want none")
	default:
	}
	fillCopy(t, st, "p2")
	fillCopy(t, st, "p3")
	<-c.Taken()
	if at, err := c.Position(); err != nil || string(at) != "p2" {
		t.Fatalf("got position %q and error %v, want p2", at, err)
	}
	at2, keys := sumAll(t, c, 1<<20)
	if keys != 100 {
		t.Errorf("got %d keys, want 100", keys)
	}
	if again, _ := sumAll(t, c, 700); again != at2 {
		t.Error("got another checksum when the content is read in parts, want the same")
	}
	c.Close()
	c = takeContent(t, st)
	at3, _ := sumAll(t, c, 1<<20)
	if at3 == at2 {
		t.Error("got the same checksum of another content, want a different one")
	}
	if err := st.Apply(nil, []byte("p4")); err != nil {
		t.Fatal(err)
	}
	c.Close()
	c = takeContent(t, st)
	if at4, _ := sumAll(t, c, 1<<20); at4 != at3 {
		t.Error("got another checksum for another position only, want the same")
	}
	b := st.s.db.NewBatch()
	if err := b.Delete(append([]byte{keyRecord}, "00000050"...), nil); err != nil {
		t.Fatal(err)
	}
	if err := st.s.db.Apply(b, cdb.NoSync); err != nil {
		t.Fatal(err)
	}
	c.Close()
	c = takeContent(t, st)
	if at5, keys := sumAll(t, c, 1<<20); at5 == at3 || keys != 99 {
		t.Errorf("got %d keys and the same checksum: %t, want 99 and another one", keys, at5 == at3)
	}
	closeCopy(t, st) // with an open content
	if _, _, _, err := c.Sum(sha256.New(), nil, 1); err == nil {
		t.Error("got a checksum of a closed store, want an error")
	}
	c.Close()
}

// TestCondemn checks that a store with intact files and a wrong content is damaged, and stays so after a
// restart.
func TestCondemn(t *testing.T) {
	dir := t.TempDir()
	st := openCopy(t, dir)
	fillCopy(t, st, "p1")
	st.SetVerified()
	st.Condemn(errors.New("content is not that of a majority"))
	<-st.Damaged()
	closeCopy(t, st)
	_, err := OpenStore(dir, Options{})
	var damage *FileDamage
	if !errors.As(err, &damage) || !errors.Is(err, engine.ErrCorrupt) || !strings.Contains(err.Error(), "majority") {
		t.Errorf("open: got error %v, want the reason as damage", err)
	}
}
