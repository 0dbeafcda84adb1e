package httpframing_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"freshet/internal/base/httpframing"
)

// serve reads requests as net/http does: the header, Begin, then the body. It returns the path of
// each request with its body, and the error of the last Begin.
func serve(from io.Reader) (served []string, err error) {
	var tracker httpframing.Tracker
	in := bufio.NewReader(readerFunc(func(p []byte) (int, error) { return tracker.Read(from, p) }))
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return served, nil //nolint:nilerr // the end of the connection
		}
		if err := tracker.Begin(r.ContentLength, len(r.TransferEncoding) > 0); err != nil {
			return served, err
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return served, nil //nolint:nilerr // net/http closes the connection
		}
		served = append(served, r.URL.Path+" "+string(body))
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestTracker(t *testing.T) {
	t.Parallel()
	const (
		none    = "GET /none HTTP/1.1\r\nHost: x\r\n\r\n"
		length  = "POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
		chunked = "POST /chunked HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"2;e\r\nab\r\n1\r\nc\r\n0\r\nT: 1\r\n\r\n"
		two = "POST /two HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
		old = "POST /old HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
		bad = "POST /bad HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"
	)
	for text, want := range map[string]struct {
		served string
		err    error
	}{
		none + length + chunked + none: {"/none |/length abc|/chunked abc|/none ", nil},
		two + none:                     {"", httpframing.ErrTwoLengths},
		none + two + none:              {"/none ", httpframing.ErrTwoLengths},
		length + two:                   {"/length abc", httpframing.ErrTwoLengths},
		chunked + two:                  {"/chunked abc", httpframing.ErrTwoLengths},
		chunked + old:                  {"/chunked abc", httpframing.ErrOldVersion},
		none + bad + two:               {"/none ", nil},
	} {
		for name, from := range map[string]io.Reader{
			"at once": strings.NewReader(text), "by byte": iotest.OneByteReader(strings.NewReader(text)),
			"in halves": iotest.HalfReader(strings.NewReader(text)),
			"with EOF":  iotest.DataErrReader(strings.NewReader(text)),
		} {
			served, err := serve(from)
			if strings.Join(served, "|") != want.served || !errors.Is(err, want.err) {
				t.Errorf("%q %s: got %q, %v; want %q, %v", text, name, served, err, want.served, want.err)
			}
		}
	}
}

// TestTrackerFailsClosed checks that a request is rejected if the handler of another was not
// reported, because then the Tracker may be wrong about where requests begin.
func TestTrackerFailsClosed(t *testing.T) {
	t.Parallel()
	var tracker httpframing.Tracker
	from := strings.NewReader("GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n")
	in := bufio.NewReader(readerFunc(func(p []byte) (int, error) { return tracker.Read(from, p) }))
	for range 2 {
		if _, err := http.ReadRequest(in); err != nil {
			t.Fatal(err)
		}
	}
	if err := tracker.Begin(0, false); !errors.Is(err, httpframing.ErrUnclear) {
		t.Errorf("got %v, want %v", err, httpframing.ErrUnclear)
	}
}

// FuzzTracker checks that the Tracker changes no byte of what net/http reads.
func FuzzTracker(f *testing.F) {
	f.Add("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\naGET / HTTP/1.1\r\n\r\n", 3)
	f.Add("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n", 100)
	f.Fuzz(func(t *testing.T, text string, size int) {
		var tracker httpframing.Tracker
		var got strings.Builder
		from, p := strings.NewReader(text), make([]byte, 1+size&0xff)
		for {
			n, err := tracker.Read(from, p)
			got.Write(p[:n])
			if err != nil {
				break
			}
			if n == 0 {
				t.Fatal("read nothing")
			}
		}
		if got.String() != text {
			t.Errorf("got %q, want %q", got.String(), text)
		}
		_, _ = serve(strings.NewReader(text))
	})
}
