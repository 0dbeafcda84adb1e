package kafkaapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/base/errs"
	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
	"freshet/internal/storage/engine"
)

// Types of acknowledgements.
const (
	ackGap     int8 = 0 // the offset has no record for the consumer
	ackAccept  int8 = 1
	ackRelease int8 = 2
	ackReject  int8 = 3
	ackRenew   int8 = 4
)

// shareAcks are the acknowledgements of one partition in a request.
type shareAcks struct {
	sharePartition
	batches []kmsg.ShareAcknowledgeRequestTopicPartitionAcknowledgementBatch
}

// shareAckCall applies the acknowledgements of a request.
type shareAckCall struct {
	c       *call
	session *shareSession
	group   string
	renews  bool // the request may contain acknowledgements of the type renew
}

// errRecordState means that a record is not on lease to the member.
var errRecordState = errs.New(errs.Conflict,
	"record is not on lease to this member: the lease has expired, or the record is acknowledged already")

// shareTopic looks up a topic that the caller may consume in a share group.
func (c *call) shareTopic(ctx context.Context, id [16]byte, group string) (*messaging.KafkaTopic, error) {
	number, ok := c.session.cluster.topicNumber(id)
	if !ok {
		return nil, errTopicID
	}
	topic, err := c.session.cluster.Topics.KafkaTopicByID(ctx, number)
	if errors.Is(err, messaging.ErrNoTopic) {
		return nil, errTopicID
	}
	if err != nil {
		return nil, err
	}
	if !c.mayConsume(ctx, topic.Name(), group) && !c.canDescribe(ctx, topic.Name()) {
		return nil, errTopicID // as for an id that does not exist
	}
	if err := c.authorizeShared(ctx, topic.Name(), group, permitConsume); err != nil {
		return nil, err
	}
	return topic, nil
}

// sharePartitionOf looks up the topic of a partition that this server leads.
func (c *call) sharePartitionOf(ctx context.Context, at sharePartition, group string) (*messaging.KafkaTopic, error) {
	topic, err := c.shareTopic(ctx, at.id, group)
	if err != nil {
		return nil, err
	}
	if !topic.HasPartition(at.partition) {
		return topic, engine.ErrNoPartition
	}
	return topic, c.checkLeader(topic, -1)
}

// apply applies the acknowledgements of a partition, all or none.
func (a *shareAckCall) apply(ctx context.Context, acks *shareAcks) (*messaging.KafkaTopic, error) {
	topic, err := a.c.sharePartitionOf(ctx, acks.sharePartition, a.group)
	if err != nil {
		return topic, err
	}
	a.session.mu.Lock()
	settled, err := a.settlementsLocked(acks)
	a.session.mu.Unlock()
	if err != nil || len(settled) == 0 {
		return topic, err
	}
	before := time.Now()
	if err := a.session.shares.Settle(ctx, topic, a.group, settled); err != nil {
		return topic, err
	}
	a.session.mu.Lock()
	defer a.session.mu.Unlock()
	of := a.session.acquired[acks.sharePartition]
	if of == nil {
		return topic, nil // the session has ended meanwhile
	}
	for i := range settled {
		offset := settled[i].ID.Entry
		if settled[i].Action == engine.Extend {
			lease := of.leases[offset]
			lease.until = before.Add(settled[i].Delay)
			of.leases[offset] = lease
			continue
		}
		if _, ok := of.leases[offset]; ok {
			delete(of.leases, offset)
			a.session.records--
			a.c.conn.server.chargeAcquired(a.session.key.principal, -1)
		}
	}
	return topic, nil
}

// settlementsLocked returns what the acknowledgements of a partition mean for its leases.
func (a *shareAckCall) settlementsLocked(acks *shareAcks) ([]engine.Settlement, error) {
	of := a.session.acquired[acks.sharePartition]
	if of == nil {
		of = &acquiredRecords{}
	}
	var settled []engine.Settlement
	last, left := int64(-1), int64(maxAcquiredInSession)
	for i := range acks.batches {
		b := &acks.batches[i]
		more := b.LastOffset - b.FirstOffset // besides the first one; both are positive, so it does not overflow
		switch {
		case b.FirstOffset <= last || b.LastOffset < b.FirstOffset:
			return nil, fmt.Errorf("%w: acknowledgement of offsets %d to %d is not in order", errInvalid, b.FirstOffset,
				b.LastOffset)
		case len(b.AcknowledgeTypes) != 1 && int64(len(b.AcknowledgeTypes))-1 != more:
			return nil, fmt.Errorf("%w: acknowledgement of offsets %d to %d has %d types, must be one or one for each",
				errInvalid, b.FirstOffset, b.LastOffset, len(b.AcknowledgeTypes))
		case more >= left:
			return nil, errRecordState // more than a member can have on lease
		}
		last, left = b.LastOffset, left-more-1
		for n := range more + 1 {
			offset := b.FirstOffset + n
			kind := b.AcknowledgeTypes[min(int(n), len(b.AcknowledgeTypes)-1)]
			action, delay, err := a.action(kind)
			if err != nil {
				return nil, err
			}
			lease, ok := of.leases[uint64(offset)] //nolint:gosec // not negative, see last
			switch {
			case ok:
				settled = append(settled, of.settlement(acks.sharePartition, uint64(offset), lease, action, delay))
			case kind != ackGap:
				return nil, fmt.Errorf("offset %d: %w", offset, errRecordState)
			}
		}
	}
	return settled, nil
}

// action returns the action on a lease for a type of acknowledgement.
func (a *shareAckCall) action(kind int8) (engine.Action, time.Duration, error) {
	switch kind {
	case ackGap, ackAccept:
		return engine.Accept, 0, nil
	case ackRelease:
		return engine.Nack, 0, nil
	case ackReject:
		return engine.Reject, 0, nil
	case ackRenew:
		if a.renews {
			return engine.Extend, a.session.lock, nil
		}
	}
	return 0, 0, fmt.Errorf("%w: acknowledgement type %d cannot be used in this request", errInvalid, kind)
}

// checkAckBatches returns an error if a request has too many acknowledgements.
func checkAckBatches(acks []shareAcks) error {
	n := 0
	for i := range acks {
		n += len(acks[i].batches)
	}
	if n > maxAcquiredInSession {
		return fmt.Errorf("%w: request has %d batches of acknowledgements, at most %d are allowed", errInvalid, n,
			maxAcquiredInSession)
	}
	return nil
}

// beginShareCall checks a request of a share session as a whole.
func (c *call) beginShareCall(ctx context.Context, group, member string) error {
	if member == "" {
		return fmt.Errorf("%w: member id is empty", errInvalid)
	}
	if err := messaging.CheckShareGroup(group); err != nil {
		return fmt.Errorf("%w: %w", groups.ErrGroupID, err)
	}
	if !c.maySomewhere(group, useGroup.onTopics) {
		return c.deniedGroup(useGroup, c.groupScopeOf(group))
	}
	return ctx.Err()
}

func shareAcknowledge(ctx context.Context, c *call, request *kmsg.ShareAcknowledgeRequest,
	response *kmsg.ShareAcknowledgeResponse,
) error {
	ctx = access.WithBudget(ctx)
	group, member := deref(request.GroupID), deref(request.MemberID)
	err := checkTopics(request.Topics, func(t *kmsg.ShareAcknowledgeRequestTopic) int { return len(t.Partitions) })
	if err == nil {
		err = c.beginShareCall(ctx, group, member)
	}
	var acks []shareAcks
	for i := range request.Topics {
		topic := &request.Topics[i]
		for j := range topic.Partitions {
			p := &topic.Partitions[j]
			acks = append(acks, shareAcks{sharePartition{topic.TopicID, p.Partition}, p.AcknowledgementBatches})
		}
	}
	if err == nil {
		err = checkAckBatches(acks)
	}
	var session *shareSession
	switch {
	case err != nil:
	case request.ShareSessionEpoch == sessionInitial:
		err = errShareEpoch
	default:
		session, err = c.nextShareEpoch(group, member, request.ShareSessionEpoch)
	}
	if err != nil {
		response.ErrorCode, response.ErrorMessage = c.errorResponse(err)
		return nil
	}
	a := &shareAckCall{
		c: c, session: session, group: group, renews: request.IsRenewAck,
	}
	for i := range acks {
		part := kmsg.NewShareAcknowledgeResponseTopicPartition()
		part.Partition = acks[i].partition
		topic, err := a.apply(ctx, &acks[i])
		if ctx.Err() != nil {
			return ctx.Err()
		}
		part.ErrorCode, part.ErrorMessage = c.shareError(err)
		if at, epoch, ok := c.newLeader(topic, err); ok {
			part.CurrentLeader.LeaderID, part.CurrentLeader.LeaderEpoch = at.ID, epoch
			response.NodeEndpoints = append(response.NodeEndpoints, kmsg.ShareAcknowledgeResponseNodeEndpoint{
				NodeID: at.ID, Host: at.Host, Port: at.Port, Rack: c.rack(),
			})
		}
		n := len(response.Topics) - 1
		if n < 0 || response.Topics[n].TopicID != acks[i].id {
			row := kmsg.NewShareAcknowledgeResponseTopic()
			row.TopicID = acks[i].id
			response.Topics, n = append(response.Topics, row), n+1
		}
		response.Topics[n].Partitions = append(response.Topics[n].Partitions, part)
	}
	response.AcquisitionLockTimeoutMillis = int32(session.lock.Milliseconds()) //nolint:gosec // at most 12 hours
	if request.ShareSessionEpoch == sessionNone {
		c.conn.endShareSession()
	}
	return nil
}

// shareError is errorResponse for a partition. A partition whose subscription is gone is reported as unknown.
func (c *call) shareError(err error) (code, *string) {
	found, message := c.errorResponse(err)
	switch {
	case errors.Is(err, messaging.ErrNoSubscription):
		found = codeUnknownTopic
	case errors.Is(err, messaging.ErrNoMessage):
		found = codeRecordState
	}
	return consumerCode(found), message
}
