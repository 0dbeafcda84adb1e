package kafkadiff

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// responseTimeout bounds how long a broker may take for one response.
const responseTimeout = 20 * time.Second

// keyAPIVersions is the one API whose responses always have the first header version.
const keyAPIVersions = 18

// errNoResponse means that the broker closed the connection instead of responding.
var errNoResponse = errors.New("broker closed the connection")

// wire is a connection to a broker that sends one request at a time.
type wire struct {
	net.Conn
	format *kmsg.RequestFormatter
	sent   int32
}

func dial(ctx context.Context, address string) (*wire, error) {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &wire{Conn: conn, format: kmsg.NewRequestFormatter(kmsg.FormatterClientID("kafkadiff"))}, nil
}

// request sends a request in its version and returns the response. It returns errNoResponse
// when the broker closes the connection.
func (w *wire) request(request kmsg.Request) (kmsg.Response, error) {
	if err := w.SetDeadline(time.Now().Add(responseTimeout)); err != nil {
		return nil, err
	}
	w.sent++
	if _, err := w.Write(w.format.AppendRequest(nil, request, w.sent)); err != nil {
		return nil, errNoResponse
	}
	var size [4]byte
	if _, err := io.ReadFull(w, size[:]); err != nil {
		return nil, closedError(err)
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(w, body); err != nil {
		return nil, closedError(err)
	}
	r := kbin.Reader{Src: body}
	if got := r.Int32(); got != w.sent {
		return nil, fmt.Errorf("correlation id: got %d, want %d", got, w.sent)
	}
	response := request.ResponseKind()
	if response.IsFlexible() && request.Key() != keyAPIVersions {
		kmsg.SkipTags(&r)
	}
	if err := response.ReadFrom(r.Src); err != nil {
		return nil, fmt.Errorf("response of API %d, version %d: %w", request.Key(), request.GetVersion(), err)
	}
	return response, nil
}

// closedError returns errNoResponse for the error of a connection that the broker closed.
func closedError(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("no response within %s: %w", responseTimeout, err)
	}
	return errNoResponse
}
