package wire

import (
	"encoding/binary"
	"math/bits"
)

// Writer appends fields. Its zero value is empty; the bytes are the Writer itself.
type Writer []byte

// Byte appends one byte.
func (w *Writer) Byte(b byte) { *w = append(*w, b) }

// Raw appends bytes without a length.
func (w *Writer) Raw(b []byte) { *w = append(*w, b...) }

// Uint16 appends a big-endian number of two bytes.
func (w *Writer) Uint16(v uint16) { *w = binary.BigEndian.AppendUint16(*w, v) }

// Uint32 appends a big-endian number of four bytes.
func (w *Writer) Uint32(v uint32) { *w = binary.BigEndian.AppendUint32(*w, v) }

// Uint64 appends a big-endian number of eight bytes.
func (w *Writer) Uint64(v uint64) { *w = binary.BigEndian.AppendUint64(*w, v) }

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

// LengthPrefixed appends bytes after their length, an unsigned varint.
func (w *Writer) LengthPrefixed(b []byte) {
	*w = append(binary.AppendUvarint(*w, uint64(len(b))), b...)
}

// Text appends a string after its length, an unsigned varint.
func (w *Writer) Text(s string) {
	*w = append(binary.AppendUvarint(*w, uint64(len(s))), s...)
}

// Nullable appends bytes after their length, a signed varint; nil as the length -1.
func (w *Writer) Nullable(b []byte) {
	if b == nil {
		*w = binary.AppendVarint(*w, -1)
		return
	}
	*w = append(binary.AppendVarint(*w, int64(len(b))), b...)
}

// UvarintSize returns the number of bytes of an unsigned varint.
func UvarintSize(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// VarintSize returns the number of bytes of a signed varint.
func VarintSize(v int64) int {
	return UvarintSize(uint64(v)<<1 ^ uint64(v>>63)) //nolint:gosec // the encoding of zigzag
}
