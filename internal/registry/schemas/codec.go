package schemas

import "freshet/internal/base/wire"

// The binary format of records and snapshots has numbers as varints, and strings
// after their length. It has no field names and needs no reflection, so that the
// disk limits the speed of a replay, and not decoding.

func appendReferences(b *wire.Writer, refs []Reference) {
	b.Varint(int64(len(refs)))
	for _, ref := range refs {
		b.Text(ref.Name)
		b.Text(ref.Subject)
		b.Varint(int64(ref.Version))
	}
}

// decoder reads records and frames of snapshots.
type decoder struct{ wire.Reader }

func newDecoder(b []byte) *decoder { return &decoder{wire.NewReader(b)} }

// count reads the length of a list. At least one byte per element must follow.
func (d *decoder) count() int {
	n := d.Varint()
	if n < 0 || n > int64(d.Len()) {
		d.Fail(wire.ErrTruncated)
		return 0
	}
	return int(n)
}

func (d *decoder) references() []Reference {
	n := d.count()
	if n == 0 {
		return nil
	}
	refs := make([]Reference, n)
	for i := range refs {
		refs[i] = Reference{Name: d.Text(), Subject: d.Text(), Version: d.Varint32()}
	}
	return refs
}
