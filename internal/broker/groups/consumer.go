package groups

import (
	"context"
	"fmt"
	"time"
)

// Member epochs with a special meaning.
const (
	epochJoin        int32 = 0
	epochLeave       int32 = -1
	epochLeaveStatic int32 = -2 // a static member leaves temporarily
)

// ConsumerRequest is a heartbeat of the consumer protocol. With it a member joins, stays, reports
// the partitions that it owns, and leaves.
type ConsumerRequest struct {
	MemberID         string
	InstanceID       string // of a static member; "" for none or unchanged
	Epoch            int32  // member epoch; 0 joins, -1 leaves, -2 leaves temporarily
	ClientID         string
	ClientHost       string
	Rack             string        // "" for none or unchanged
	RebalanceTimeout time.Duration // timeout to revoke partitions; negative for unchanged
	Names            []string      // subscribed topics; nil for unchanged
	Pattern          *string       // regular expression of subscribed topics; nil for unchanged, "" for none
	Assignor         string        // "" for the coordinator's choice or unchanged
	Owned            []Partition   // partitions that the member owns; nil for unchanged
	Topics           Topics
	Classic          ClassicCodec // decodes the members of a classic group; nil if they cannot be decoded
	Caller           Caller

	classic *classicMember // set when a classic member's request has the effect of this heartbeat
}

// ConsumerResult is the result of a heartbeat.
type ConsumerResult struct {
	MemberID          string
	Epoch             int32
	HeartbeatInterval time.Duration // until the next heartbeat
	HasAssignment     bool          // whether Assignment is set
	Assignment        []Partition   // sorted
}

// ConsumerTimeouts returns the heartbeat interval and the session timeout of members with the consumer
// protocol.
func (c *Coordinator) ConsumerTimeouts() (heartbeat, session time.Duration) {
	return c.opts.HeartbeatInterval, consumerSessionTimeout
}

// ConsumerHeartbeat handles a heartbeat of the consumer protocol. It returns once everything in the
// result is durable.
func (c *Coordinator) ConsumerHeartbeat(ctx context.Context, key Key, req *ConsumerRequest) (ConsumerResult, error) {
	if err := req.check(key); err != nil {
		return ConsumerResult{}, err
	}
	change, err := req.subscription()
	if err != nil {
		return ConsumerResult{}, err
	}
	var found *resolution
	var classic *upgrade
	for {
		g, err := c.shard(key).lock(key, req.Epoch == epochJoin)
		if err != nil {
			return ConsumerResult{}, err
		}
		if err := g.mayHeartbeatLocked(req); err != nil {
			g.unlock()
			return ConsumerResult{}, err
		}
		switch decoded, err := g.becomeConsumersLocked(req, classic); {
		case err != nil:
			g.unlock()
			return ConsumerResult{}, err
		case !decoded:
			classic = g.beginUpgradeLocked()
			g.unlock() // decoding looks topics up, which may block
			if err := classic.decode(req.Classic); err != nil {
				return ConsumerResult{}, fmt.Errorf("%w: %w", ErrNotConsumerProtocol, err)
			}
			if ctx.Err() != nil {
				return ConsumerResult{}, ctx.Err()
			}
			continue
		}
		if of, due := g.consumers.unresolved(req, change, found); due {
			g.unlock() // resolving topics may block
			if found, err = resolve(req.Topics, of); err != nil {
				return ConsumerResult{}, err
			}
			if ctx.Err() != nil {
				return ConsumerResult{}, ctx.Err()
			}
			continue
		}
		return g.handleHeartbeatAndUnlock(req, change, found)
	}
}

// mayHeartbeatLocked returns an error unless the caller may join the group, or the member is the caller's.
func (g *group) mayHeartbeatLocked(req *ConsumerRequest) error {
	o := g.ownerLocked(req.MemberID)
	switch {
	case req.Epoch < epochJoin && o != nil && o.belongsTo(&req.Caller):
		return nil // a caller who may no longer use the group can still leave it
	case req.Epoch != epochJoin || o != nil && !o.belongsTo(&req.Caller):
		return g.admitLocked(&req.Caller, req.MemberID)
	}
	return g.mayUseLocked(&req.Caller, o) // the request replaces the subscription of a known member
}

// handleHeartbeatAndUnlock handles a heartbeat in a locked group and unlocks the group.
func (g *group) handleHeartbeatAndUnlock(req *ConsumerRequest, change *subscription,
	found *resolution,
) (ConsumerResult, error) {
	defer g.unlock()
	var result ConsumerResult
	var err error
	if req.Epoch < epochJoin {
		result, err = g.leaveConsumerLocked(req)
	} else {
		result, err = g.heartbeatLocked(req, change, found)
	}
	if err != nil {
		return ConsumerResult{}, err
	}
	if err := g.settleLocked(); err != nil {
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
		return fmt.Errorf("%w: %w", ErrInvalidHeartbeat, ErrGroupID)
	case r.MemberID == "":
		return fmt.Errorf("%w: member id is empty; generate one and keep it", ErrInvalidHeartbeat)
	case r.Epoch < epochLeaveStatic:
		return fmt.Errorf("%w: member epoch %d is out of range", ErrInvalidHeartbeat, r.Epoch)
	case r.Epoch == epochLeaveStatic && r.InstanceID == "":
		return fmt.Errorf("%w: only a member with an instance id can leave temporarily", ErrInvalidHeartbeat)
	case r.Epoch == epochJoin && r.RebalanceTimeout < 0:
		return fmt.Errorf("%w: joining member must send its rebalance timeout", ErrInvalidHeartbeat)
	case r.Epoch == epochJoin && (r.Owned == nil || len(r.Owned) > 0):
		return fmt.Errorf("%w: joining member must send an empty list of owned partitions", ErrInvalidHeartbeat)
	case r.Epoch == epochJoin && r.Names == nil && r.Pattern == nil:
		return fmt.Errorf("%w: joining member must subscribe to topics by name or regular expression",
			ErrInvalidHeartbeat)
	case len(r.Names) > maxSubscribedTopics || size > maxMemberBytes:
		return fmt.Errorf("%w: %d topics with %d bytes, at most %d with %d are allowed", ErrTooLarge, len(r.Names),
			size, maxSubscribedTopics, maxMemberBytes)
	case len(r.Owned) > maxGroupPartitions:
		return fmt.Errorf("%w: %d owned partitions are more than a group can have", ErrTooLarge, len(r.Owned))
	case r.Assignor != "" && r.Assignor != assignorUniform && r.Assignor != assignorRange:
		return fmt.Errorf("%w: %q; use %s or %s", ErrAssignor, r.Assignor, assignorUniform, assignorRange)
	}
	return nil
}

// subscription returns the subscription in the request, or nil when it is unchanged. Parts that the
// request does not contain are unchanged too, see merge.
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
func (r *ConsumerRequest) merge(before, change *subscription) subscription {
	after := *before
	if r.Names != nil {
		after.names = change.names
	}
	if r.Pattern != nil {
		after.pattern, after.matcher = change.pattern, change.matcher
	}
	return after
}
