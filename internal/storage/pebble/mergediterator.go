package pebble

import (
	"bytes"
	"fmt"

	cdb "github.com/cockroachdb/pebble/v2"
)

// mergedIterator iterates over the keys of several stores in order. A key that every store has, such
// as its format, is visited once per store.
type mergedIterator struct {
	sources []*closedStore
	iters   []*cdb.Iterator
	at      int // index of the current iterator; -1 before the first key
}

// newMergedIterator starts after the key behind, or at the first key when behind is empty.
func newMergedIterator(sources []*closedStore, behind []byte) (*mergedIterator, error) {
	m := &mergedIterator{sources: sources, at: -1}
	for _, r := range sources {
		iter, err := r.db.NewIter(nil)
		if err != nil {
			m.close()
			return nil, storeError(err)
		}
		m.iters = append(m.iters, iter)
		if len(behind) == 0 {
			iter.First()
		} else if iter.SeekGE(behind) && bytes.Equal(iter.Key(), behind) {
			iter.Next()
		}
	}
	return m, nil
}

// next moves to the next key.
func (m *mergedIterator) next() bool {
	if m.at >= 0 {
		m.iters[m.at].Next()
	}
	m.at = -1
	for i, iter := range m.iters {
		if iter.Valid() && (m.at < 0 || bytes.Compare(iter.Key(), m.iters[m.at].Key()) < 0) {
			m.at = i
		}
	}
	return m.at >= 0
}

// current returns the key and its value, which are valid until next.
func (m *mergedIterator) current() (key, value []byte, err error) {
	iter := m.iters[m.at]
	value, err = iter.ValueAndErr()
	return iter.Key(), value, storeError(err)
}

func (m *mergedIterator) source() *closedStore { return m.sources[m.at] }

func (m *mergedIterator) err() error {
	for i, iter := range m.iters {
		if err := iter.Error(); err != nil {
			return fmt.Errorf("reading %s: %w", m.sources[i].dir, storeError(err))
		}
	}
	return nil
}

func (m *mergedIterator) close() {
	for _, iter := range m.iters {
		_ = iter.Close() // err has returned its errors
	}
}
