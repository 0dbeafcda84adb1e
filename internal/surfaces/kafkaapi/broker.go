package kafkaapi

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"net"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// notAsked is the value of authorized operations that nobody asked for.
const notAsked = -1 << 31

// advertised is the address that the client of a connection is sent to: what is
// configured, else the name it used, else the address it came to.
func (c *conn) advertised() (host string, port int32) {
	local, localPort, _ := net.SplitHostPort(c.socket.LocalAddr().String())
	number, _ := strconv.ParseInt(localPort, 10, 32)
	host, port = local, int32(number)
	if c.sni != "" {
		host = c.sni
	}
	if given := c.listener.Advertised; given != "" {
		host = given
		if h, p, err := net.SplitHostPort(given); err == nil {
			host = h
			if n, err := strconv.ParseInt(p, 10, 32); err == nil {
				port = int32(n)
			}
		}
	}
	return host, port
}

// clusterID is the cluster's UID in 22 characters.
func (c *Cluster) clusterID() string {
	raw, err := hex.DecodeString(strings.ReplaceAll(c.UID, "-", ""))
	if err != nil || len(raw) != 16 {
		return c.UID
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func (c *call) rack() *string {
	if c.session.cluster.Location == "" {
		return nil
	}
	return text(c.session.cluster.Location)
}

// handle makes an answer out of a function that fills the response at its turn.
func handle[Request kmsg.Request, Response kmsg.Response](fill func(ctx context.Context, c *call, request Request,
	response Response) error,
) func(context.Context, *call) answer {
	return func(_ context.Context, c *call) answer {
		request, _ := c.request.(Request)
		response, _ := request.ResponseKind().(Response)
		return now(func(ctx context.Context) (encodable, error) {
			return response, fill(ctx, c, request, response)
		})
	}
}

// describe is handle for answers that may be large: a few are made at a time.
func describe[Request kmsg.Request, Response kmsg.Response](fill func(ctx context.Context, c *call, request Request,
	response Response) error,
) func(context.Context, *call) answer {
	return handle(func(ctx context.Context, c *call, request Request, response Response) error {
		if err := c.conn.server.making.Acquire(ctx, 1); err != nil {
			return err
		}
		defer c.conn.server.making.Release(1)
		return fill(ctx, c, request, response)
	})
}
