package pebble

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// countingFS counts how often a table is opened.
type countingFS struct {
	vfs.FS
	opened atomic.Int64
}

// Open implements vfs.FS.
func (c *countingFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if strings.HasSuffix(name, ".sst") && c.opened.Add(1) > 10_000 {
		panic("damaged table is read without a pause")
	}
	return c.FS.Open(name, opts...)
}

// TestUnopenableTable opens a copy with a table that cannot be opened, and does not close it: Pebble tries to read
// its statistics until then, which must not need a core. In simulated time nothing happens meanwhile.
func TestUnopenableTable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		files := &countingFS{FS: vfs.NewMem()}
		st, err := OpenStore("store", Options{FS: files})
		if err != nil {
			t.Fatal(err)
		}
		b := st.s.db.NewBatch()
		for i := range 100 {
			key := fmt.Appendf([]byte{keyRecord}, "%08d", i)
			if err := b.Set(key, addChecksum(key, []byte("text")), cdb.NoSync); err != nil {
				t.Fatal(err)
			}
		}
		if err := st.Apply(b.Repr(), []byte("1")); err != nil {
			t.Fatal(err)
		}
		if err := st.Flush(); err != nil {
			t.Fatal(err)
		}
		closeCopy(t, st)
		names, err := files.List("store")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, ".sst") {
				rewrite(t, files.FS, "store/"+name, func(data []byte) []byte {
					clear(data[len(data)-8:]) // the magic number of its footer
					return data
				})
			}
		}
		if st, err = OpenStore("store", Options{FS: files}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if st.Damage() == nil {
			t.Error("got no damage")
		}
		closeCopy(t, st)
	})
}
