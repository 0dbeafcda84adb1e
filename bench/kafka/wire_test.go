package kafka

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/bench/process"
	"freshet/test/testserver"
)

// wire is a plain TCP connection without a Kafka client, so that thousands of them are cheap.
type wire struct {
	conn net.Conn
	in   *bufio.Reader
	next int32
}

// connectionsPerAddress is the number of connections per source address, below the brokers' limits.
const connectionsPerAddress = 900

// dial opens the nth connection and authenticates it if the broker has a token. The
// caller closes it.
func (k *broker) dial(ctx context.Context, n int) (*wire, error) {
	from := net.IPv4(127, 0, 9, byte(n/connectionsPerAddress+1))
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}).DialContext(ctx, "tcp", k.address)
	if err != nil {
		return nil, err
	}
	w := &wire{conn: conn, in: bufio.NewReaderSize(conn, 512)}
	var requests []kmsg.Request
	if !k.bare {
		requests = append(requests, kmsg.NewPtrApiVersionsRequest())
	}
	if k.token != "" {
		handshake, authenticate := kmsg.NewPtrSASLHandshakeRequest(), kmsg.NewPtrSASLAuthenticateRequest()
		handshake.Version, handshake.Mechanism = 1, "PLAIN"
		authenticate.Version, authenticate.SASLAuthBytes = 2, []byte("\x00bench\x00"+k.token)
		requests = append(requests, handshake, authenticate)
	}
	for _, request := range requests {
		response, err := w.roundTrip(request)
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		if refused, ok := response.(*kmsg.SASLAuthenticateResponse); ok && refused.ErrorCode != 0 {
			return nil, errors.Join(fmt.Errorf("authenticating: code %d", refused.ErrorCode), conn.Close())
		}
	}
	return w, nil
}

// roundTrip sends a request and reads its response.
func (w *wire) roundTrip(request kmsg.Request) (kmsg.Response, error) {
	w.next++
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench")).AppendRequest(nil, request, w.next)
	if _, err := w.conn.Write(frame); err != nil {
		return nil, err
	}
	var head [4]byte
	if _, err := io.ReadFull(w.in, head[:]); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(w.in, body); err != nil {
		return nil, err
	}
	body = body[4:] // skip the correlation id
	response := request.ResponseKind()
	response.SetVersion(request.GetVersion())
	if response.IsFlexible() && response.Key() != kmsg.ApiVersions.Int16() {
		body = body[1:] // skip the empty tag section
	}
	return response, response.ReadFrom(body)
}

// dialMany opens n connections, a few at a time, and closes them at the end of the trial.
func (t *trial) dialMany(n int) ([]*wire, error) {
	all := make([]*wire, n)
	t.closers = append(t.closers, func() {
		for _, w := range all {
			if w != nil {
				_ = w.conn.Close()
			}
		}
	})
	const concurrency = 32
	return all, each(concurrency, func(part int) (err error) {
		for i := part; i < n && err == nil; i += concurrency {
			all[i], err = t.k.dial(t.ctx, i)
		}
		return err
	})
}

// connectionLimit returns how many of n connections fit into the limit of open files (ulimit
// -Hn). Freshet reserves 2,000 files, and a third of the rest for HTTP.
func connectionLimit(n int) (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	most := (int(min(limit.Max, 1<<30))-2_000)*2/3 - 100
	if most < 100 {
		return 0, fmt.Errorf("limit of %d open files is too low; raise it with ulimit -n", limit.Max)
	}
	return min(n, most), nil
}

// idleRow opens connections to a new server, which stay idle.
func idleRow(name string, n int) row {
	return row{name: name, variants: func(brokers []*broker) []variant {
		return []variant{{brokers[0].name, brokers[0], func(t *trial) (outcome, error) {
			n, err := connectionLimit(n)
			if err != nil {
				return outcome{}, err
			}
			dir, err := os.MkdirTemp("", "freshet-idle-")
			if err != nil {
				return outcome{}, err
			}
			t.closers = append(t.closers, func() { _ = os.RemoveAll(dir) })
			s, err := testserver.Start(t.ctx, freshet, dir, testserver.Options{Kafka: true})
			if err != nil {
				return outcome{}, err
			}
			t.closers = append(t.closers, s.Kill)
			before, err := process.Resident(s.PID())
			if err != nil {
				return outcome{}, err
			}
			if err := t.switchTo(&broker{pid: s.PID(), address: s.Kafka, token: s.Token}); err != nil {
				return outcome{}, err
			}
			if _, err = t.dialMany(n); err != nil {
				return outcome{}, err
			}
			after, err := process.Resident(s.PID())
			return outcome{records: n, note: fmt.Sprintf("%d connections: %d MB resident, %d MB before", n, after>>20,
				before>>20)}, err
		}}}
	}}
}
