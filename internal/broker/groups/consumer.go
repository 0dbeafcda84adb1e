package groups

import (
	"context"
	"fmt"
	"time"
)

// Epochs with a meaning of their own.
const (
	epochJoin        int32 = 0
	epochLeave       int32 = -1
	epochLeaveStatic int32 = -2 // the member will come back under its instance id
)

// ConsumerRequest is a heartbeat of the consumer protocol, by which a member
// joins, goes on, says what it has let go, and leaves.
type ConsumerRequest struct {
	MemberID   string
	InstanceID string // of a static member; "" for none, or as before
	Epoch      int32  // the member's; 0 joins, -1 leaves, -2 leaves for a while
	ClientID   string
	ClientHost string
	Rack       string        // "" for none, or as before
	Rebalance  time.Duration // to let partitions go; below 0 as before
	Names      []string      // subscribed topics; nil as before
	Pattern    *string       // subscribed topics by a regular expression; nil as before, "" for none
	Assignor   string        // "" for the coordinator's choice, or as before
	Owned      []Partition   // what the member has; nil as before
	Topics     Topics
}

// ConsumerResult answers a heartbeat.
type ConsumerResult struct {
	MemberID   string
	Epoch      int32
	Interval   time.Duration // until the next heartbeat
	Told       bool          // whether Assignment is there
	Assignment []Partition   // what the member may have, in order
}

// ConsumerTimes returns how often members of the consumer protocol are told to say
// that they live, and how long they may be silent.
func (c *Coordinator) ConsumerTimes() (heartbeat, session time.Duration) {
	return c.opts.Heartbeat, consumerSession
}

// ConsumerHeartbeat takes a heartbeat of the consumer protocol. It returns once
// everything that the result tells is durable.
func (c *Coordinator) ConsumerHeartbeat(ctx context.Context, key Key, req *ConsumerRequest) (ConsumerResult, error) {
	if err := req.check(key); err != nil {
		return ConsumerResult{}, err
	}
	wanted, err := req.subscription()
	if err != nil {
		return ConsumerResult{}, err
	}
	var found *resolution
	for {
		g, err := c.shard(key).lock(key, req.Epoch == epochJoin)
		if err != nil {
			return ConsumerResult{}, err
		}
		if err := g.becomeConsumersLocked(req.Epoch == epochJoin); err != nil {
			g.unlock()
			return ConsumerResult{}, err
		}
		if of, due := g.consumers.unresolved(req, wanted, found); due {
			g.unlock() // finding topics may wait
			if found, err = resolve(req.Topics, of); err != nil {
				return ConsumerResult{}, err
			}
			if ctx.Err() != nil {
				return ConsumerResult{}, ctx.Err()
			}
			continue
		}
		return g.answerConsumerLocked(req, wanted, found)
	}
}

// answerConsumerLocked handles a heartbeat in a locked group, which it unlocks.
func (g *group) answerConsumerLocked(req *ConsumerRequest, wanted *subscription,
	found *resolution,
) (ConsumerResult, error) {
	defer g.unlock()
	var result ConsumerResult
	var err error
	if req.Epoch < epochJoin {
		result, err = g.leaveConsumerLocked(req)
	} else {
		result, err = g.heartbeatLocked(req, wanted, found)
	}
	if err != nil {
		return ConsumerResult{}, err
	}
	if err := g.durableLocked(); err != nil {
		return ConsumerResult{}, err
	}
	return result, nil
}

func (r *ConsumerRequest) check(key Key) error {
	size := len(r.MemberID) + len(r.InstanceID) + len(r.ClientID) + len(r.Rack)
	for _, name := range r.Names {
		size += len(name)
	}
	switch {
	case key.Group == "" || len(key.Group) > maxGroupID:
		return fmt.Errorf("%w: %w", ErrRequest, ErrGroupID)
	case r.MemberID == "":
		return fmt.Errorf("%w: the member has no id; choose one and keep it", ErrRequest)
	case r.Epoch < epochLeaveStatic:
		return fmt.Errorf("%w: there is no member epoch %d", ErrRequest, r.Epoch)
	case r.Epoch == epochLeaveStatic && r.InstanceID == "":
		return fmt.Errorf("%w: only a member with an instance id can leave for a while", ErrRequest)
	case r.Epoch == epochJoin && r.Rebalance < 0:
		return fmt.Errorf("%w: who joins must tell its rebalance timeout", ErrRequest)
	case r.Epoch == epochJoin && (r.Owned == nil || len(r.Owned) > 0):
		return fmt.Errorf("%w: who joins must say that it owns no partitions", ErrRequest)
	case r.Epoch == epochJoin && r.Names == nil && r.Pattern == nil:
		return fmt.Errorf("%w: who joins must subscribe to topics by name or by a regular expression", ErrRequest)
	case len(r.Names) > maxSubscribed || size > maxMemberBytes:
		return fmt.Errorf("%w: %d topics with %d bytes, at most %d with %d are allowed", ErrTooLarge, len(r.Names),
			size, maxSubscribed, maxMemberBytes)
	case len(r.Owned) > maxGroupPartitions:
		return fmt.Errorf("%w: %d partitions are more than a group can have", ErrTooLarge, len(r.Owned))
	case r.Assignor != "" && r.Assignor != assignorUniform && r.Assignor != assignorRange:
		return fmt.Errorf("%w: %q; use %s or %s", ErrAssignor, r.Assignor, assignorUniform, assignorRange)
	}
	return nil
}

// subscription returns what the request changes of the member's, nil for nothing.
// A part that it does not name stays what it is.
func (r *ConsumerRequest) subscription() (*subscription, error) {
	if r.Names == nil && r.Pattern == nil {
		return nil, nil //nolint:nilnil // nothing changes
	}
	s := &subscription{names: r.Names}
	if r.Pattern != nil {
		matcher, err := compile(*r.Pattern)
		if err != nil {
			return nil, err
		}
		s.pattern, s.matcher = *r.Pattern, matcher
	}
	return s, nil
}

// merge returns the subscription of a member after the request.
func (r *ConsumerRequest) merge(before, wanted *subscription) subscription {
	after := *before
	if r.Names != nil {
		after.names = wanted.names
	}
	if r.Pattern != nil {
		after.pattern, after.matcher = wanted.pattern, wanted.matcher
	}
	return after
}
