package framing_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"freshet/internal/base/framing"
)

// TestChunks writes in portions of many sizes: the chunks are those that stores and journals of earlier
// versions contain.
func TestChunks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		writes []string
		want   []string
	}{
		{nil, nil},
		{[]string{""}, nil},
		{[]string{"abc"}, []string{"abc"}},
		{[]string{"abcd"}, []string{"abcd"}},
		{[]string{"ab", "cde"}, []string{"abcd", "e"}},
		{[]string{"abcdefgh", "", "i"}, []string{"abcd", "efgh", "i"}},
		{[]string{"a", "bcdefghijkl"}, []string{"abcd", "efgh", "ijkl"}},
	} {
		var got []string
		w := framing.NewChunkWriter(4, func(chunk []byte) error {
			got = append(got, string(chunk))
			return nil
		})
		for _, text := range c.writes {
			if n, err := io.WriteString(w, text); n != len(text) || err != nil {
				t.Fatalf("Write(%q): got %d, %v", text, n, err)
			}
		}
		if err := errors.Join(w.Flush(), w.Flush()); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: got chunks %q, %v, want %q", c.writes, got, err, c.want)
		}
		rest := got
		r := framing.NewChunkReader(func() ([]byte, error) {
			if len(rest) == 0 {
				return nil, io.EOF
			}
			chunk := rest[0]
			rest = rest[1:]
			return []byte(chunk), nil
		})
		if err := iotest.TestReader(r, []byte(strings.Join(c.writes, ""))); err != nil {
			t.Errorf("%q: %v", c.writes, err)
		}
	}
}

func TestChunkErrors(t *testing.T) {
	t.Parallel()
	failure := errors.New("disk is full")
	failed := failure
	var got []string
	w := framing.NewChunkWriter(4, func(chunk []byte) error {
		if failed == nil {
			got = append(got, string(chunk))
		}
		return failed
	})
	if n, err := io.WriteString(w, "abcdef"); n != 4 || !errors.Is(err, failure) {
		t.Errorf("Write: got %d, %v, want 4, %v", n, err, failure)
	}
	failed = nil
	if err := w.Flush(); err != nil || !slices.Equal(got, []string{"abcd"}) {
		t.Errorf("Flush after the error: got %q, %v", got, err)
	}
	r := framing.NewChunkReader(func() ([]byte, error) { return nil, failure })
	if _, err := io.ReadAll(r); !errors.Is(err, failure) {
		t.Errorf("Read: got %v, want %v", err, failure)
	}
}

func TestFrames(t *testing.T) {
	t.Parallel()
	frames := []string{"abc", "", strings.Repeat("x", 300)}
	var out bytes.Buffer
	w := bufio.NewWriterSize(&out, 16)
	for _, f := range frames {
		if err := framing.WriteFrame(w, []byte(f)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	want := "03616263" + "00" + "ac02" + strings.Repeat("78", 300)
	if got := hex.EncodeToString(out.Bytes()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	reader := func(data []byte, limit int) *framing.FrameReader {
		return framing.NewFrameReader(bufio.NewReader(bytes.NewReader(data)), limit)
	}
	r := reader(out.Bytes(), 300)
	for _, f := range frames {
		if got, err := r.Next(); err != nil || string(got) != f {
			t.Errorf("Next: got %q, %v, want %q", got, err, f)
		}
	}
	if _, err := r.Next(); err != io.EOF { //nolint:errorlint // returned bare
		t.Errorf("after the last frame: got %v, want %v", err, io.EOF)
	}
	for _, c := range []struct {
		name  string
		data  []byte
		limit int
		want  error
	}{
		{"too large", []byte{4, 1, 2, 3, 4}, 3, framing.ErrTooLarge},
		{"only a length", []byte{4}, 9, io.ErrUnexpectedEOF},
		{"a part", []byte{4, 1}, 9, io.ErrUnexpectedEOF},
		{"a part of a length", []byte{0x80}, 9, io.ErrUnexpectedEOF},
	} {
		if _, err := reader(c.data, c.limit).Next(); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
}
