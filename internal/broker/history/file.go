package history

import (
	"bytes"
	"compress/gzip"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"

	"freshet/internal/base/atomicfile"
)

// The file is compressed with gzip, which has a checksum at its end. It contains a header and then one
// fileSeries for each series, encoded with encoding/gob.

// fileFormat is the version of the file. A file of another version is read as an empty history.
const fileFormat = "freshet history 1"

// maxFileBytes bounds what is read of a file after decompression.
const maxFileBytes = 128 << 20

type fileHeader struct {
	Format string
	Series int
}

type fileSeries struct {
	Key   Key
	Score float64
	Rings []ring
}

// errFile is returned for a file that Run did not write.
var errFile = errors.New("file is damaged or of another version")

// save writes the file. An error is logged: the next write may succeed.
func (r *Recorder) save() {
	if !r.opts.HasSpace() {
		return
	}
	data, err := r.encode()
	if err == nil {
		err = atomicfile.Replace(r.opts.Path, data)
	}
	if err != nil {
		r.opts.Logger.Warn("writing the history of statistics failed; a restart would lose the last minutes of it",
			slog.String("file", r.opts.Path), slog.Any("error", err))
	}
}

// encode returns the content of the file.
func (r *Recorder) encode() ([]byte, error) {
	var out bytes.Buffer
	packed, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	keys := r.allKeys()
	to := gob.NewEncoder(packed)
	err = to.Encode(fileHeader{fileFormat, len(keys)})
	for _, key := range keys {
		err = errors.Join(err, to.Encode(r.copyOf(key)))
	}
	err = errors.Join(err, packed.Close())
	return out.Bytes(), err
}

// copyOf returns a copy of a series. One that was removed meanwhile has no rings.
func (r *Recorder) copyOf(key Key) *fileSeries {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &fileSeries{Key: key}
	s := r.series[key]
	if s == nil {
		return out
	}
	out.Score = s.score
	for i := range s.rings {
		one := s.rings[i]
		one.Values = slices.Clone(one.Values)
		out.Rings = append(out.Rings, one)
	}
	return out
}

// load fills the recorder from the file. It returns nil if the file does not exist. If it returns an error, the
// recorder may have some of the series already, and the caller removes them.
func (r *Recorder) load() error {
	f, err := os.Open(r.opts.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // read only
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%w: %w", errFile, err)
	}
	bounded := io.LimitReader(unpacked, maxFileBytes)
	from := gob.NewDecoder(bounded)
	var header fileHeader
	if err := from.Decode(&header); err != nil {
		return fmt.Errorf("%w: %w", errFile, err)
	}
	if header.Format != fileFormat || header.Series < 0 || header.Series > int(kinds)*maxSeries {
		return errFile
	}
	for range header.Series {
		var one fileSeries
		if err := from.Decode(&one); err != nil {
			return fmt.Errorf("%w: %w", errFile, err)
		}
		if err := r.restore(&one); err != nil {
			return err
		}
	}
	if n, err := io.Copy(io.Discard, bounded); n != 0 || err != nil { // reads the checksum
		return fmt.Errorf("%w: %w", errFile, err)
	}
	return nil
}

// restore adds a series of the file.
func (r *Recorder) restore(one *fileSeries) error {
	if len(one.Rings) == 0 {
		return nil
	}
	if one.Key.Kind >= kinds || len(one.Rings) != len(resolutions) {
		return errFile
	}
	s := r.admit(one.Key, 0)
	if s == nil {
		return nil
	}
	s.score = one.Score
	for i := range s.rings {
		if len(one.Rings[i].Values) != len(s.rings[i].Values) || one.Rings[i].Last < 0 {
			return errFile
		}
		s.rings[i] = one.Rings[i]
	}
	return nil
}
