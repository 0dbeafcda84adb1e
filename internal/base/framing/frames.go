package framing

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrTooLarge is the error of a frame whose length exceeds the limit of the reader.
var ErrTooLarge = errors.New("frame is out of range")

// WriteFrame writes a frame after its length, an unsigned varint.
func WriteFrame(w *bufio.Writer, frame []byte) error {
	if _, err := w.Write(binary.AppendUvarint(w.AvailableBuffer(), uint64(len(frame)))); err != nil {
		return err
	}
	_, err := w.Write(frame)
	return err
}

// FrameReader reads the frames that WriteFrame wrote.
type FrameReader struct {
	r     *bufio.Reader
	limit int
	buf   []byte
}

// NewFrameReader returns a FrameReader of frames of at most limit bytes: the limit bounds the memory
// that a damaged stream can allocate.
func NewFrameReader(r *bufio.Reader, limit int) *FrameReader { return &FrameReader{r: r, limit: limit} }

// Next returns the next frame, which is valid until the next call. It returns io.EOF if the stream
// ends before a frame, and io.ErrUnexpectedEOF if it ends within one.
func (f *FrameReader) Next() ([]byte, error) {
	n, err := binary.ReadUvarint(f.r)
	if err != nil {
		return nil, err
	}
	if n > uint64(f.limit) { //nolint:gosec // a limit is not negative
		return nil, fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, n, f.limit)
	}
	if uint64(cap(f.buf)) < n {
		f.buf = make([]byte, n)
	}
	f.buf = f.buf[:n]
	if _, err := io.ReadFull(f.r, f.buf); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // the length was there
		}
		return nil, err
	}
	return f.buf, nil
}
