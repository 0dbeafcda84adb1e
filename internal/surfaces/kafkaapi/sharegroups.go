package kafkaapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/base/names"
	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
	"freshet/internal/storage/engine"
)

// A share group (KIP-932) is the subscriptions of its name: docs/spec/stream.md#share-groups. A caller that may consume
// a topic over HTTP with a subscription may consume it in the share group of that name, so every API checks the
// permission on each topic.

func shareGroupHeartbeat(ctx context.Context, c *call, request *kmsg.ShareGroupHeartbeatRequest,
	response *kmsg.ShareGroupHeartbeatResponse,
) error {
	result, err := c.shareHeartbeat(ctx, request)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		response.ErrorCode, response.ErrorMessage = c.errorResponse(err)
		return nil
	}
	response.MemberID, response.MemberEpoch = text(result.MemberID), result.Epoch
	response.HeartbeatIntervalMillis = int32(result.HeartbeatInterval.Milliseconds()) //nolint:gosec // seconds
	if result.HasAssignment {
		response.Assignment = c.shareAssignment(result.Assignment)
	}
	return nil
}

func (c *call) shareHeartbeat(ctx context.Context, request *kmsg.ShareGroupHeartbeatRequest) (
	result groups.ConsumerResult, err error,
) {
	group := request.GroupID
	if n := len(request.SubscribedTopicNames); n > maxTopics {
		return result, fmt.Errorf("%w: subscription lists %d topics, at most %d are allowed", errInvalid, n, maxTopics)
	}
	if err := c.authorizeShareGroup(ctx, group); err != nil {
		return result, err
	}
	ctx = access.WithBudget(ctx)
	for _, name := range request.SubscribedTopicNames {
		topic, err := c.subscribedName(ctx, name, group)
		if errors.Is(err, messaging.ErrName) {
			continue // such a topic cannot exist
		}
		if err != nil {
			return result, err
		}
		if err := c.authorizeShared(ctx, topic, group, permitConsume); err != nil {
			return result, err
		}
	}
	result, err = c.coordinator().ShareHeartbeat(c.group(group), &groups.ShareRequest{
		MemberID: request.MemberID, Epoch: request.MemberEpoch, ClientID: c.client, ClientHost: "/" + c.conn.address,
		Rack: deref(request.RackID), Names: request.SubscribedTopicNames,
		Principal: access.PrincipalID(c.session.principal),
		Revision:  groups.ShareRevision{Policy: c.revisions().policy, Topics: c.revisions().cluster},
		Resolve: func(subscribed []string, known []groups.ShareTopic) ([]groups.ShareTopic, error) {
			return c.resolveShared(ctx, group, subscribed, known)
		},
	})
	if err == nil && request.MemberEpoch < 0 {
		c.conn.server.endSharesOf(c.shareKey(group, request.MemberID))
	}
	return result, err
}

// authorizeShareGroup returns an error unless the caller may consume something in a group of that name, and the name
// can be that of a subscription. The answer does not depend on whether the group exists.
func (c *call) authorizeShareGroup(ctx context.Context, group string) error {
	if err := c.authorizeCoordinator(ctx, group); err != nil {
		return err
	}
	if !c.maySomewhere(group, useGroup.onTopics) {
		return c.deniedGroup(useGroup, c.groupScopeOf(group))
	}
	if err := messaging.CheckShareGroup(group); err != nil {
		return fmt.Errorf("%w: a share group is a subscription: %w", groups.ErrGroupID, err)
	}
	return nil
}

// authorizeShared returns an error unless the caller has one of the permissions on a topic with the subscription of a
// group.
func (c *call) authorizeShared(ctx context.Context, topic names.Topic, group string,
	wanted ...access.Permission,
) error {
	scope := (&access.Consumers{Scope: c.groupScopeOf(group)}).TopicScope(topic)
	may := c.may(ctx)
	for _, p := range wanted {
		if ok, err := may(p, scope); ok || err != nil {
			return err
		}
	}
	c.auditDenied(wanted[0], scope)
	return errTopicDenied
}

// resolveShared returns the topics of a member's subscription that exist and that the caller may consume. Those that
// are not among known get the group's subscription.
func (c *call) resolveShared(ctx context.Context, group string, subscribed []string, known []groups.ShareTopic) (
	found []groups.ShareTopic, err error,
) {
	for _, clientName := range subscribed {
		name, err := c.subscribedName(ctx, clientName, group)
		if errors.Is(err, messaging.ErrName) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !c.mayConsume(ctx, name, group) {
			continue
		}
		topic, err := c.session.cluster.Topics.KafkaTopic(ctx, name)
		if code, _ := codeOf(err); code == codeUnknownTopic || code == codeInvalidTopic {
			continue
		}
		if err != nil {
			return nil, err
		}
		id := engine.TopicID(topic.ID())
		if !slices.ContainsFunc(known, func(t groups.ShareTopic) bool { return t.ID == id }) {
			if err := c.session.cluster.Shares.Ensure(ctx, topic, c.session.namespace.Tenant, group); err != nil {
				return nil, fmt.Errorf("creating subscription %s of topic %s: %w", group, clientName, err)
			}
		}
		found = append(found, groups.ShareTopic{ID: id, Name: topic.Name(), Partitions: topic.Partitions()})
	}
	slices.SortFunc(found, func(a, b groups.ShareTopic) int { return cmp.Compare(a.ID, b.ID) })
	return slices.CompactFunc(found, func(a, b groups.ShareTopic) bool { return a.ID == b.ID }), nil
}

func (c *call) shareAssignment(parts []groups.Partition) *kmsg.ShareGroupHeartbeatResponseAssignment {
	assignment := &kmsg.ShareGroupHeartbeatResponseAssignment{
		TopicPartitions: []kmsg.ShareGroupHeartbeatResponseAssignmentTopicPartition{},
	}
	for i, p := range parts {
		if i == 0 || p.Topic != parts[i-1].Topic {
			row := kmsg.NewShareGroupHeartbeatResponseAssignmentTopicPartition()
			row.TopicID = c.session.cluster.topicID(uint64(p.Topic))
			assignment.TopicPartitions = append(assignment.TopicPartitions, row)
		}
		row := &assignment.TopicPartitions[len(assignment.TopicPartitions)-1]
		row.Partitions = append(row.Partitions, p.Partition)
	}
	return assignment
}

// sharedTopic is a topic with the subscription of a share group.
type sharedTopic struct {
	*messaging.KafkaTopic
	offsets []messaging.ShareOffset // by partition
}

// seeShared are the permissions of which any one allows a caller to see the subscription of a group on a topic.
var seeShared = []access.Permission{permitConsume, permitSubscriptions}

// eachShared calls visit for the subscriptions that the caller may see, of the topics in the connection's namespace.
func (c *call) eachShared(ctx context.Context, visit func(group string, topic sharedTopic)) error {
	topics, err := c.visibleTopics(ctx)
	if err != nil {
		return err
	}
	quiet := *c
	quiet.unaudited = true
	for _, topic := range topics {
		offsets, err := c.session.cluster.Shares.Offsets(ctx, topic)
		if code, _ := codeOf(err); code == codeUnknownTopic {
			continue // deleted meanwhile
		}
		if err != nil {
			return err
		}
		for group := range offsets {
			if quiet.authorizeShared(ctx, topic.Name(), group, seeShared...) == nil {
				visit(group, sharedTopic{topic, offsets[group]})
			}
		}
	}
	return nil
}

// sharedTopics returns the topics with the subscription of a group that the caller may see.
func (c *call) sharedTopics(ctx context.Context, group string) (found []sharedTopic, err error) {
	err = c.eachShared(ctx, func(name string, topic sharedTopic) {
		if name == group {
			found = append(found, topic)
		}
	})
	return found, err
}

// checkCoordinator returns an error unless this server coordinates a group.
func (c *call) checkCoordinator(group string) error {
	if c.session.cluster.Members.Coordinator(c.group(group)) != c.self() {
		return groups.ErrNotCoordinator
	}
	return nil
}

// describedShare returns the members of a share group, and the topics with its subscription, if the caller may
// describe all of that.
func (c *call) describedShare(ctx context.Context, group string) (groups.ShareDescription, []sharedTopic, error) {
	if err := c.authorizeCoordinator(ctx, group); err != nil {
		return groups.ShareDescription{}, nil, err
	}
	d, err := c.coordinator().DescribeShare(c.group(group))
	if err != nil && !errors.Is(err, groups.ErrNoGroup) {
		return groups.ShareDescription{}, nil, err
	}
	for i := range d.Members {
		for _, topic := range d.Members[i].Topics {
			if err := c.authorizeShared(ctx, topic.Name, group, seeShared...); err != nil {
				return groups.ShareDescription{}, nil, errGroupDenied
			}
		}
	}
	topics, failed := c.sharedTopics(ctx, group)
	switch {
	case failed != nil:
		return groups.ShareDescription{}, nil, failed
	case err != nil && len(topics) > 0:
		return groups.ShareDescription{Key: c.group(group)}, topics, nil
	case err != nil:
		return d, nil, c.noShareGroup(ctx, group)
	}
	return d, topics, nil
}

// noShareGroup returns the error for a share group of which the caller can see nothing. It is the same for a group that
// does not exist, unless the caller may describe every group of that name.
func (c *call) noShareGroup(ctx context.Context, group string) error {
	scope := c.groupScopeOf(group)
	whole, err := (&access.Consumers{Scope: scope}).MayUse(c.may(ctx), describeGroup.onGroup)
	switch {
	case err != nil:
		return err
	case whole:
		return groups.ErrNoGroup
	}
	return c.deniedGroup(describeGroup, scope)
}

func shareState(d *groups.ShareDescription) string {
	if len(d.Members) == 0 {
		return "Empty"
	}
	return "Stable"
}

func shareGroupDescribe(ctx context.Context, c *call, request *kmsg.ShareGroupDescribeRequest,
	response *kmsg.ShareGroupDescribeResponse,
) error {
	ctx = access.WithBudget(ctx)
	limit, budget := checkRequestSize(len(request.GroupIDs), 0), maxDescriptionBytes
	for _, name := range request.GroupIDs {
		row := kmsg.NewShareGroupDescribeResponseGroup()
		row.GroupID, row.AuthorizedOperations = name, operationsNotRequested
		err := limit
		if err == nil {
			err = checkGroupID(name)
		}
		if err == nil {
			err = c.describeShareGroup(ctx, &row, &budget, request.IncludeAuthorizedOperations)
		}
		if err != nil {
			row.ErrorCode, row.ErrorMessage = c.errorResponse(err)
			row.GroupState, row.Members = "", nil
		}
		response.Groups = append(response.Groups, row)
	}
	return nil
}

// simpleAssignor is the name of the assignor of share groups.
const simpleAssignor = "simple"

func (c *call) describeShareGroup(ctx context.Context, row *kmsg.ShareGroupDescribeResponseGroup, budget *int,
	operations bool,
) error {
	d, topics, err := c.describedShare(ctx, row.GroupID)
	if err != nil {
		return err
	}
	row.GroupState, row.Assignor = shareState(&d), simpleAssignor
	row.GroupEpoch, row.AssignmentEpoch = d.Epoch, d.Epoch
	shown := make(map[engine.TopicID]string)
	reads := groups.Reads{}
	for i := range topics {
		reads.Topics = append(reads.Topics, topics[i].Name())
	}
	for i := range d.Members {
		m := &d.Members[i]
		for _, topic := range m.Topics {
			shown[topic.ID] = c.displayName(topic.Name)
			reads.Topics = append(reads.Topics, topic.Name)
		}
		member := kmsg.NewShareGroupDescribeResponseGroupMember()
		member.MemberID, member.RackID, member.MemberEpoch = m.ID, optional(m.Rack), m.Epoch
		member.ClientID, member.ClientHost = m.ClientID, m.ClientHost
		member.SubscribedTopicNames = append([]string{}, m.Names...)
		member.Assignment.TopicPartitions = c.sharedPartitions(m.Assigned, shown)
		*budget -= 128 + len(m.ID) + len(m.ClientID) + 64*len(m.Topics) + 8*len(m.Assigned)
		for _, name := range m.Names {
			*budget -= len(name) + 8
		}
		if *budget < 0 {
			return errDescriptionSize
		}
		row.Members = append(row.Members, member)
	}
	if operations {
		described := groups.Description{Key: c.group(row.GroupID), Reads: reads}
		row.AuthorizedOperations = c.operationsOnGroup(ctx, &described)
	}
	return nil
}

func (c *call) sharedPartitions(parts []groups.Partition, shown map[engine.TopicID]string) (
	rows []kmsg.ShareGroupDescribeResponseGroupMemberAssignmentTopicPartition,
) {
	for i, p := range parts {
		if i == 0 || p.Topic != parts[i-1].Topic {
			row := kmsg.NewShareGroupDescribeResponseGroupMemberAssignmentTopicPartition()
			row.TopicID, row.Topic = c.session.cluster.topicID(uint64(p.Topic)), shown[p.Topic]
			rows = append(rows, row)
		}
		row := &rows[len(rows)-1]
		row.Partitions = append(row.Partitions, p.Partition)
	}
	return rows
}

// listShareGroups returns the share groups that the caller may see and that this server coordinates.
func (c *call) listShareGroups(ctx context.Context) (rows []kmsg.ListGroupsResponseGroup, err error) {
	found := make(map[string]string) // states
	err = c.eachShared(ctx, func(group string, _ sharedTopic) {
		if _, ok := found[group]; ok || c.checkCoordinator(group) != nil {
			return
		}
		d, err := c.coordinator().DescribeShare(c.group(group))
		if err == nil || errors.Is(err, groups.ErrNoGroup) {
			found[group] = shareState(&d)
		}
	})
	for group, state := range found {
		row := kmsg.NewListGroupsResponseGroup()
		row.Group, row.ProtocolType, row.GroupState, row.GroupType = group, groups.TypeShare, state, groups.TypeShare
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b kmsg.ListGroupsResponseGroup) int { return cmp.Compare(a.Group, b.Group) })
	return rows, err
}

// deleteShareGroup deletes the subscriptions of a share group; false if the caller can see none.
func (c *call) deleteShareGroup(ctx context.Context, group string) (bool, error) {
	if !c.maySomewhere(group, seeShared) {
		return false, nil
	}
	topics, err := c.sharedTopics(ctx, group)
	if err != nil || len(topics) == 0 {
		return false, err
	}
	for i := range topics {
		if err := c.authorizeShared(ctx, topics[i].Name(), group, permitDeleteSubscription); err != nil {
			return true, errGroupDenied
		}
	}
	if err := c.coordinator().CheckNoShareMembers(c.group(group)); err != nil {
		return true, err
	}
	for i := range topics {
		err := c.session.cluster.Shares.Delete(ctx, topics[i].KafkaTopic, group)
		if err != nil && !errors.Is(err, messaging.ErrNoSubscription) {
			return true, err
		}
	}
	return true, c.session.cluster.Shares.Forget(ctx, c.session.namespace.Tenant, group)
}
