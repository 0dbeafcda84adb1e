package kafkaapi

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
	"freshet/internal/storage/engine"
)

func offsetCommit(ctx context.Context, c *call, request *kmsg.OffsetCommitRequest,
	response *kmsg.OffsetCommitResponse,
) error {
	err := checkTopics(request.Topics, func(t *kmsg.OffsetCommitRequestTopic) int { return len(t.Partitions) })
	if err == nil {
		err = c.authorizeCoordinator(ctx, request.Group)
	}
	commit := &groups.CommitRequest{
		MemberID: request.MemberID, InstanceID: instanceID(request.InstanceID), Generation: request.Generation,
		SupportsMemberEpochs: c.version >= 9,
		Offsets:              make(map[groups.Partition]groups.Offset),
	}
	for i := range request.Topics {
		requested := &request.Topics[i]
		row := kmsg.NewOffsetCommitResponseTopic()
		row.Topic, row.TopicID = requested.Topic, requested.TopicID
		topic, topicErr := c.requestedTopic(ctx, err, requested.Topic, requested.TopicID, permitConsume)
		for j := range requested.Partitions {
			p := &requested.Partitions[j]
			part := kmsg.NewOffsetCommitResponseTopicPartition()
			part.Partition = p.Partition
			switch {
			case err != nil:
			case topicErr != nil:
				part.ErrorCode = c.codeOf(topicErr)
			case !topic.HasPartition(p.Partition):
				part.ErrorCode = codeUnknownTopic
			case len(deref(p.Metadata)) > maxOffsetMetadata:
				part.ErrorCode = codeOffsetMetadata
			default:
				if n := len(commit.Topics); n == 0 || commit.Topics[n-1] != topic.Name() {
					commit.Topics = append(commit.Topics, topic.Name())
				}
				commit.Offsets[groups.PartitionOf(topic.ID(), p.Partition)] = groups.Offset{
					Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: deref(p.Metadata),
				}
			}
			row.Partitions = append(row.Partitions, part)
		}
		response.Topics = append(response.Topics, row)
	}
	if err == nil {
		err = c.onGroup(ctx, request.Group, useGroup, commit.Topics, false, func(caller groups.Caller) error {
			commit.Caller = caller
			return c.coordinator().Commit(ctx, c.group(request.Group), commit)
		})
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		failed := c.codeOf(err)
		for i := range response.Topics {
			for j := range response.Topics[i].Partitions {
				response.Topics[i].Partitions[j].ErrorCode = failed
			}
		}
	}
	return nil
}

const maxOffsetMetadata = 4096

func offsetFetch(ctx context.Context, c *call, request *kmsg.OffsetFetchRequest,
	response *kmsg.OffsetFetchResponse,
) error {
	requested := request.Groups
	if c.version < 8 {
		one := kmsg.OffsetFetchRequestGroup{Group: request.Group}
		if request.Topics != nil {
			one.Topics = []kmsg.OffsetFetchRequestGroupTopic{}
		}
		for i := range request.Topics {
			one.Topics = append(one.Topics,
				kmsg.OffsetFetchRequestGroupTopic{
					Topic:      request.Topics[i].Topic,
					Partitions: request.Topics[i].Partitions,
				})
		}
		requested = []kmsg.OffsetFetchRequestGroup{one}
	}
	topics, partitions := 0, 0
	for i := range requested {
		topics += len(requested[i].Topics)
		partitions += partitionsIn(requested[i].Topics,
			func(t *kmsg.OffsetFetchRequestGroupTopic) int { return len(t.Partitions) })
	}
	ctx = access.WithBudget(ctx)
	limit, left := checkRequestSize(max(len(requested), topics), partitions), maxPartitions
	for i := range requested {
		row := kmsg.NewOffsetFetchResponseGroup()
		row.Group = requested[i].Group
		err := limit
		var committed groups.Committed
		if err == nil {
			committed, err = c.committed(ctx, &requested[i])
		}
		if err == nil && requested[i].MemberID != nil {
			caller := groups.Caller{Principal: access.PrincipalID(c.session.principal)}
			err = c.coordinator().CheckMember(c.group(row.Group), caller, *requested[i].MemberID,
				requested[i].MemberEpoch)
		}
		switch {
		case err != nil:
		case requested[i].Topics == nil:
			var rows int
			rows, err = c.allOffsets(ctx, &row, committed)
			if left -= rows; left < 0 {
				limit = checkRequestSize(0, maxPartitions+1) // the other groups need separate requests
			}
		default:
			err = c.someOffsets(ctx, &row, requested[i].Topics, committed)
		}
		if err != nil {
			row.ErrorCode, row.Topics = c.offsetsCode(err), nil
			if c.version < 2 { // older versions have no code for the whole response
				rejectOffsets(&row, requested[i].Topics)
			}
		}
		response.Groups = append(response.Groups, row)
	}
	if c.version < 8 {
		flatten(response)
	}
	return nil
}

// committed returns the committed offsets of a group that the caller may describe. A caller who may consume one
// of the requested topics may also read the offsets of a group that reads nothing: a consumer does that before
// its first commit.
func (c *call) committed(ctx context.Context, requested *kmsg.OffsetFetchRequestGroup) (groups.Committed, error) {
	committed, reads, err := c.coordinator().CommittedAndReads(c.group(requested.Group))
	if err != nil {
		return groups.Committed{}, err
	}
	if reads.None() {
		quiet := *c
		quiet.unaudited = true
		for i := range requested.Topics {
			topic := &requested.Topics[i]
			if _, err := quiet.topicBy(ctx, topic.Topic, topic.TopicID, permitConsume); err == nil ||
				errors.Is(err, messaging.ErrNoTopic) { // topicBy authorizes first
				return committed, nil
			}
		}
	}
	return committed, c.authorizeReads(ctx, requested.Group, describeGroup, reads)
}

// flatten converts the response for one group to its older form.
func flatten(response *kmsg.OffsetFetchResponse) {
	group := response.Groups[0]
	response.Groups, response.ErrorCode = nil, group.ErrorCode
	for _, t := range group.Topics {
		row := kmsg.NewOffsetFetchResponseTopic()
		row.Topic = t.Topic
		for _, p := range t.Partitions {
			part := kmsg.NewOffsetFetchResponseTopicPartition()
			part.Partition, part.Offset, part.LeaderEpoch, part.Metadata, part.ErrorCode = p.Partition, p.Offset,
				p.LeaderEpoch, p.Metadata, p.ErrorCode
			row.Partitions = append(row.Partitions, part)
		}
		response.Topics = append(response.Topics, row)
	}
}

// rejectOffsets sets the error code of a group for each of its partitions.
func rejectOffsets(row *kmsg.OffsetFetchResponseGroup, requested []kmsg.OffsetFetchRequestGroupTopic) {
	for i := range requested {
		t := kmsg.NewOffsetFetchResponseGroupTopic()
		t.Topic = requested[i].Topic
		for _, index := range requested[i].Partitions {
			p := kmsg.NewOffsetFetchResponseGroupTopicPartition()
			p.Partition, p.Offset, p.Metadata, p.ErrorCode = index, -1, text(""), row.ErrorCode
			t.Partitions = append(t.Partitions, p)
		}
		row.Topics = append(row.Topics, t)
	}
}

// offsetsCode returns the error code of a group whose offsets cannot be read. It returns
// NOT_COORDINATOR for temporary errors, because consumers retry after that code.
func (c *call) offsetsCode(err error) code {
	switch failed := c.codeOf(err); failed {
	case codeNotAvailable, codeNoLeader, codeNotLeader, codeTimedOut:
		return codeNotCoordinator
	default:
		return failed
	}
}

// someOffsets returns the offsets of the requested partitions. A topic that does not exist has no
// committed offsets, as in Kafka. A topic that cannot be looked up is an error for the whole group:
// a consumer without a committed offset would start from the beginning.
func (c *call) someOffsets(
	ctx context.Context, row *kmsg.OffsetFetchResponseGroup, requested []kmsg.OffsetFetchRequestGroupTopic,
	committed groups.Committed,
) error {
	for i := range requested {
		t := kmsg.NewOffsetFetchResponseGroupTopic()
		t.Topic, t.TopicID = requested[i].Topic, requested[i].TopicID
		topic, err := c.topicBy(ctx, requested[i].Topic, requested[i].TopicID, describePermissions...)
		failed, absent := codeOK, false
		switch found, _ := codeOf(err); found {
		case codeOK:
		case codeTopicDenied, codeUnknownTopicID:
			failed, absent = found, true
		case codeUnknownTopic, codeInvalidTopic:
			absent = true
		default:
			return err
		}
		for _, index := range requested[i].Partitions {
			p := kmsg.NewOffsetFetchResponseGroupTopicPartition()
			p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = index, -1, -1, text("")
			p.ErrorCode = failed
			if !absent {
				if o, ok := committed.Offset(groups.PartitionOf(topic.ID(), index)); ok {
					p.Offset, p.LeaderEpoch, p.Metadata = o.Offset, o.LeaderEpoch, text(o.Metadata)
				}
			}
			t.Partitions = append(t.Partitions, p)
		}
		row.Topics = append(row.Topics, t)
	}
	return nil
}

// allOffsets returns all offsets that a group has committed for topics that exist and that the
// caller may see, and the number of partitions.
func (c *call) allOffsets(ctx context.Context, row *kmsg.OffsetFetchResponseGroup,
	committed groups.Committed,
) (rows int, err error) {
	byTopic := make(map[engine.TopicID]int) // topic → index in row.Topics
	for _, id := range committed.Topics() {
		topic, err := c.session.cluster.Topics.KafkaTopicByID(ctx, id)
		if errors.Is(err, messaging.ErrNoTopic) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if c.canDescribe(ctx, topic.Name()) {
			byTopic[engine.TopicID(id)] = len(row.Topics)
			t := kmsg.NewOffsetFetchResponseGroupTopic()
			t.Topic, t.TopicID = c.displayName(topic.Name()), c.session.cluster.topicID(topic.ID())
			row.Topics = append(row.Topics, t)
		}
	}
	committed.Each(func(at groups.Partition, o groups.Offset) {
		if index, ok := byTopic[at.Topic]; ok {
			p := kmsg.NewOffsetFetchResponseGroupTopicPartition()
			p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = at.Partition, o.Offset, o.LeaderEpoch, text(o.Metadata)
			row.Topics[index].Partitions = append(row.Topics[index].Partitions, p)
			rows++
		}
	})
	return rows, nil
}
