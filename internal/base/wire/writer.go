package wire

import (
	"encoding/binary"
	"math/bits"
)

// Writer appends fields. Its zero value is empty; the bytes are the Writer itself.
type Writer []byte

// Uvarint appends an unsigned varint.
func (w *Writer) Uvarint(v uint64) { *w = binary.AppendUvarint(*w, v) }

// Varint appends a signed varint (zigzag).
func (w *Writer) Varint(v int64) { *w = binary.AppendVarint(*w, v) }

// Bool appends 1 or 0.
func (w *Writer) Bool(v bool) {
	if v {
		*w = append(*w, 1)
		return
	}
	*w = append(*w, 0)
}

// Text appends a string after its length, an unsigned varint.
func (w *Writer) Text(s string) {
	*w = append(binary.AppendUvarint(*w, uint64(len(s))), s...)
}

// UvarintSize returns the number of bytes of an unsigned varint.
func UvarintSize(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// VarintSize returns the number of bytes of a signed varint.
func VarintSize(v int64) int {
	return UvarintSize(uint64(v)<<1 ^ uint64(v>>63)) //nolint:gosec // the encoding of zigzag
}
