package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/storage/engine"
)

// Peers has the connections to the other members, as ensemble.Member does.
type Peers interface {
	// Call returns the HTTP/2 client for a member, which presents this member's
	// certificate, and the URL of the member's internal listener without a path.
	Call(member string) (via *http.Client, url string, err error)
}

// Client calls engines on other members.
type Client struct{ Peers Peers }

// Shard is a shard of a cluster on the member that is believed to own it. It implements
// the methods of an engine except those that only the owner can execute (AppendBatch and
// journals); AppendBatch returns engine.ErrNotOwner.
type Shard struct {
	client  *Client
	cluster string
	number  int
	owner   engine.Owner
}

// Shard returns a shard on its owner. It sends no request.
func (c *Client) Shard(cluster string, number int, owner engine.Owner) *Shard {
	return &Shard{client: c, cluster: cluster, number: number, owner: owner}
}

// call sends a request and waits for the response.
func (s *Shard) call(ctx context.Context, r request) (*reply, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.Cluster, r.Shard, r.Epoch, r.Frees = s.cluster, s.number, s.owner.Epoch, engine.AllowedWhenDiskFull(ctx)
	if deadline, ok := ctx.Deadline(); ok {
		r.Timeout = time.Until(deadline)
	}
	via, url, err := s.client.Peers.Call(s.owner.Member)
	if err != nil {
		return nil, notSentError(err)
	}
	frame, err := encode(&r)
	if err != nil {
		return nil, err
	}
	calling, cancel := context.WithCancel(ctx)
	defer cancel()
	in, out := io.Pipe()
	defer func() { _ = in.Close() }()
	go func() { _, _ = out.Write(frame) }() // returns at the latest when in is closed
	req, err := http.NewRequestWithContext(calling, http.MethodPost, url+Path, in)
	if err != nil {
		return nil, notSentError(err)
	}
	sendCaller(ctx, req)
	response, err := via.Do(req)
	if err != nil {
		return nil, brokenError(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound: // the member is starting
		return nil, notSentError(fmt.Errorf("member %q returned %s", s.owner.Member, response.Status))
	default:
		return nil, errs.Newf(errs.Unavailable, "%w: member %q returned %s", ErrUnreachable, s.owner.Member,
			response.Status)
	}
	a := &reply{}
	if err := readFrame(response.Body, a); err != nil {
		return nil, brokenError(ctx, err)
	}
	if a.Failure != nil {
		return nil, a.Failure.err()
	}
	if len(a.Deliveries) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err // the owner releases unconfirmed messages
		}
		if _, err := out.Write([]byte{1}); err != nil {
			return nil, brokenError(ctx, err)
		}
		_ = out.Close()
		// The confirmation has arrived when the owner ends the response. If it is lost, the
		// messages are delivered again, as after the expiry of their leases.
		_, _ = io.Copy(io.Discard, response.Body)
		return a, nil
	}
	_ = out.Close() // the owner needs no confirmation
	return a, nil
}

// brokenError returns the error of a call without a response.
func brokenError(ctx context.Context, err error) error {
	var dial *net.OpError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &dial) && dial.Op == "dial":
		return notSentError(err)
	}
	return &remoteError{text: ErrUnreachable.Error(), causes: []error{ErrUnreachable, err}}
}
