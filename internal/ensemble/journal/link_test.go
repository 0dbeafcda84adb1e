package journal

import (
	"errors"
	"testing"

	"freshet/internal/storage/engine"
)

// at returns a message with records from a position on.
func at(t *testing.T, first uint64, records ...string) *message {
	t.Helper()
	var all [][]byte
	for _, r := range records {
		all = append(all, []byte(r))
	}
	m, err := decode(first, encodeRecords([idBytes]byte{}, first, all))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestLinks follows messages with and without sums, in different messages, and finds other records.
func TestLinks(t *testing.T) {
	written, read := newLinks(), newLinks()
	for _, m := range []*message{at(t, 1, "one", "two"), at(t, 3, "three"), at(t, 4, "four")} {
		m.before = written.get(m.first - 1)
		if err := written.follow(m); err != nil {
			t.Fatal(err)
		}
	}
	// An earlier version has written the second message, without a sum.
	for _, m := range []*message{at(t, 1, "one"), at(t, 2, "two", "three")} {
		if err := read.follow(m); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := read.get(3), written.get(3); got != want || !got.known() {
		t.Errorf("link at 3: got %s, want %s", got, want)
	}
	next := at(t, 4, "four")
	next.before = written.get(3)
	if err := read.follow(next); err != nil || read.get(4) != written.get(4) {
		t.Errorf("link at 4: got %s, error %v; want %s", read.get(4), err, written.get(4))
	}
	other := newLinks()
	for _, m := range []*message{at(t, 1, "one", "TWO"), at(t, 3, "three")} {
		if err := other.follow(m); err != nil {
			t.Fatal(err)
		}
	}
	var loss *lossError
	if err := other.follow(next); !errors.As(err, &loss) || !errors.Is(err, engine.ErrCorrupt) {
		t.Errorf("following other records: got error %v, want a loss", err)
	}
	parsed, err := parseLink(next.before.String())
	if err != nil || parsed != next.before {
		t.Errorf("parsing %s: got %s, error %v", next.before, parsed, err)
	}
	if _, err := parseLink("xyz"); !errors.Is(err, engine.ErrCorrupt) {
		t.Errorf("parsing xyz: got error %v, want %v", err, engine.ErrCorrupt)
	}
}

// TestSnapshotOfAnEarlierVersionStartsAChain: all readers derive the same link from a snapshot without one.
func TestSnapshotOfAnEarlierVersionStartsAChain(t *testing.T) {
	p := snapshotPointer{Position: 5, SHA256: "ab"}
	base, err := p.base()
	if err != nil || !base.known() || base.chain == genesis {
		t.Fatalf("got %s, error %v; want a new chain", base, err)
	}
	c := newLinks()
	c.put(5, base)
	m := at(t, 6, "six")
	m.before = link{chain: genesis}.next(5, []byte("five")) // a writer that has read all records
	if err := c.follow(m); err != nil {
		t.Errorf("a message of another chain: got error %v, want none", err)
	}
	if got := c.get(6); got.chain != base.chain {
		t.Errorf("link at 6: got chain %x, want %x", got.chain, base.chain)
	}
}
