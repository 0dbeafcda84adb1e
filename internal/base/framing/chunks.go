package framing

import "io"

// ChunkWriter splits what is written to it into chunks of a fixed size. Only the last chunk is
// smaller, and none is empty.
type ChunkWriter struct {
	size  int
	store func(chunk []byte) error
	buf   []byte
}

// NewChunkWriter returns a ChunkWriter that passes each chunk to store. The chunk is valid until store
// returns.
func NewChunkWriter(size int, store func(chunk []byte) error) *ChunkWriter {
	return &ChunkWriter{size: size, store: store}
}

// Write implements io.Writer. A chunk that store did not accept is passed to it again by the next
// call.
func (w *ChunkWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		m := min(len(p), w.size-len(w.buf))
		w.buf = append(w.buf, p[:m]...)
		p = p[m:]
		if len(w.buf) == w.size {
			if err := w.Flush(); err != nil {
				return n - len(p), err
			}
		}
	}
	return n, nil
}

// Flush stores the last chunk. It must be called once at the end.
func (w *ChunkWriter) Flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	if err := w.store(w.buf); err != nil {
		return err
	}
	w.buf = w.buf[:0]
	return nil
}

// ChunkReader joins chunks.
type ChunkReader struct {
	next func() ([]byte, error)
	rest []byte
}

// NewChunkReader returns a ChunkReader that gets each chunk from next, which returns io.EOF after the
// last one. A chunk must be valid until the next call.
func NewChunkReader(next func() ([]byte, error)) *ChunkReader { return &ChunkReader{next: next} }

var _ io.Reader = (*ChunkReader)(nil)

// Read implements io.Reader.
func (r *ChunkReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		chunk, err := r.next()
		if err != nil {
			return 0, err
		}
		r.rest = chunk
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
