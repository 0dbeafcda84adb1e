package kafkaapi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/groups"
	"freshet/internal/identity/access"
)

// group returns the key of a group in the tenant of the connection.
func (c *call) group(name string) groups.Key {
	return groups.Key{Tenant: c.session.namespace.Tenant, Group: name}
}

// checkGroupID rejects an empty group id.
func checkGroupID(name string) error {
	if name == "" {
		return groups.ErrGroupID
	}
	return nil
}

func (c *call) coordinator() *groups.Coordinator { return c.session.cluster.Groups }

// Types of coordinators.
const (
	coordinatorTypeGroup       = 0
	coordinatorTypeTransaction = 1
)

func findCoordinator(ctx context.Context, c *call, request *kmsg.FindCoordinatorRequest,
	response *kmsg.FindCoordinatorResponse,
) error {
	keys := request.CoordinatorKeys
	if c.version < 4 {
		keys = []string{request.CoordinatorKey}
	}
	limit := checkRequestSize(len(keys), 0)
	for _, key := range keys {
		row := kmsg.NewFindCoordinatorResponseCoordinator()
		row.Key, row.NodeID, row.Port = key, -1, -1
		switch request.CoordinatorType {
		case coordinatorTypeGroup:
			err := limit
			if err == nil {
				err = c.authorizeCoordinator(ctx, key)
			}
			if err != nil {
				row.ErrorCode, row.ErrorMessage = c.errorResponse(err)
				break
			}
			if !c.coordinatorOf(key, &row) {
				row.ErrorCode, row.ErrorMessage = codeNotAvailable,
					text("group has no coordinator at the moment; try again shortly")
			}
		case coordinatorTypeTransaction:
			row.ErrorCode, row.ErrorMessage = c.transactionCode(),
				text("transactions are not available on this cluster")
		default:
			row.ErrorCode, row.ErrorMessage = codeInvalidRequest, text("coordinator type is not available to clients")
		}
		response.Coordinators = append(response.Coordinators, row)
	}
	if c.version < 4 {
		row := response.Coordinators[0]
		response.ErrorCode, response.ErrorMessage = row.ErrorCode, row.ErrorMessage
		response.NodeID, response.Host, response.Port = row.NodeID, row.Host, row.Port
		response.Coordinators = nil
	}
	return nil
}

func joinGroup(ctx context.Context, c *call, request *kmsg.JoinGroupRequest, response *kmsg.JoinGroupResponse) error {
	response.Generation, response.MemberID = -1, request.MemberID
	join, err := c.joinRequest(ctx, request)
	if err == nil {
		var result groups.JoinResult
		waiting, end := c.untilDrained(ctx)
		defer end()
		err = c.onGroup(ctx, request.Group, useGroup, join.Subscribed, join.Unknown,
			func(caller groups.Caller) (err error) {
				join.Caller = caller
				result, err = c.coordinator().Join(waiting, c.group(request.Group), join)
				return err
			})
		if err = c.waitError(ctx, waiting, err); ctx.Err() != nil {
			return err
		}
		if result.MemberID != "" {
			response.MemberID = result.MemberID
		}
		if err == nil {
			fillJoin(response, &result)
			return nil
		}
	}
	response.ErrorCode = c.codeOf(err)
	if c.version >= 7 {
		response.Protocol = nil
	} else {
		response.Protocol = text("")
	}
	return nil
}

// untilDrained returns a context for waiting that also ends when the server shuts down.
func (c *call) untilDrained(ctx context.Context) (context.Context, func()) {
	waiting, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.conn.server.draining, cancel)
	return waiting, func() {
		stop()
		cancel()
	}
}

// waitError returns the error of a call that stopped waiting: ctx's error if the client is gone,
// ErrClosed if the server shuts down and another member will coordinate.
func (c *call) waitError(ctx, waiting context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case waiting.Err() != nil && errors.Is(err, context.Canceled):
		return groups.ErrClosed
	}
	return err
}

func (c *call) joinRequest(ctx context.Context, request *kmsg.JoinGroupRequest) (*groups.JoinRequest, error) {
	subscribed, unknown, err := c.subscribedTopics(ctx, request)
	if err != nil {
		return nil, err
	}
	topics := &callTopics{ctx: ctx, call: c, group: request.Group}
	join := &groups.JoinRequest{
		MemberID: request.MemberID, InstanceID: instanceID(request.InstanceID), ClientID: c.client,
		ClientHost:       "/" + c.conn.address,
		SessionTimeout:   time.Duration(request.SessionTimeoutMillis) * time.Millisecond,
		RebalanceTimeout: time.Duration(request.RebalanceTimeoutMillis) * time.Millisecond,
		Type:             request.ProtocolType, RequireMemberID: c.version >= 4, SupportsSkipAssignment: c.version >= 9,
		Subscribed: subscribed, Unknown: unknown, Topics: topics, Classic: topics,
	}
	for i := range request.Protocols {
		join.Protocols = append(join.Protocols,
			groups.Protocol{Name: request.Protocols[i].Name, Metadata: request.Protocols[i].Metadata})
	}
	return join, nil
}

func fillJoin(response *kmsg.JoinGroupResponse, result *groups.JoinResult) {
	response.Generation, response.LeaderID, response.MemberID = result.Generation, result.Leader, result.MemberID
	response.ProtocolType, response.Protocol = text(result.Type), text(result.Protocol)
	response.SkipAssignment = result.SkipAssignment
	for _, m := range result.Members {
		row := kmsg.NewJoinGroupResponseMember()
		row.MemberID, row.ProtocolMetadata = m.ID, m.Metadata
		if m.Static {
			row.InstanceID = text(m.InstanceID)
		}
		response.Members = append(response.Members, row)
	}
}

// instanceID returns the instance id of a request as the coordinator expects it.
func instanceID(id *string) string {
	if id != nil && *id == "" {
		return groups.EmptyInstanceID
	}
	return deref(id)
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func syncGroup(ctx context.Context, c *call, request *kmsg.SyncGroupRequest, response *kmsg.SyncGroupResponse) error {
	response.MemberAssignment = []byte{}
	sync := &groups.SyncRequest{
		MemberID: request.MemberID, InstanceID: instanceID(request.InstanceID), Generation: request.Generation,
		Type: deref(request.ProtocolType), Protocol: deref(request.Protocol), NamesProtocol: c.version >= 5,
	}
	if len(request.GroupAssignment) > 0 {
		sync.Assignments = make(map[string][]byte, len(request.GroupAssignment))
	}
	for i := range request.GroupAssignment {
		sync.Assignments[request.GroupAssignment[i].MemberID] = request.GroupAssignment[i].MemberAssignment
	}
	var result groups.SyncResult
	waiting, end := c.untilDrained(ctx)
	defer end()
	err := c.onGroup(ctx, request.Group, useGroup, nil, false, func(caller groups.Caller) (err error) {
		sync.Caller = caller
		result, err = c.coordinator().Sync(waiting, c.group(request.Group), sync)
		return err
	})
	if err = c.waitError(ctx, waiting, err); ctx.Err() != nil {
		return err
	}
	if err == nil && result.Assigned != nil {
		result.Assignment, err = (&callTopics{ctx: ctx, call: c}).encodeAssignment(result.Assigned)
	}
	if err == nil {
		response.ProtocolType, response.Protocol = text(result.Type), text(result.Protocol)
		if result.Assignment != nil {
			response.MemberAssignment = result.Assignment
		}
	}
	response.ErrorCode = c.codeOf(err)
	return nil
}

func heartbeat(ctx context.Context, c *call, request *kmsg.HeartbeatRequest, response *kmsg.HeartbeatResponse) error {
	err := c.onGroup(ctx, request.Group, useGroup, nil, false, func(caller groups.Caller) error {
		return c.coordinator().Heartbeat(c.group(request.Group), caller, request.MemberID,
			instanceID(request.InstanceID), request.Generation)
	})
	response.ErrorCode = c.codeOf(err)
	return nil
}

func leaveGroup(ctx context.Context, c *call, request *kmsg.LeaveGroupRequest,
	response *kmsg.LeaveGroupResponse,
) error {
	if err := checkRequestSize(len(request.Members), 0); err != nil {
		response.ErrorCode = c.codeOf(err)
		return nil
	}
	leavers := []groups.LeavingMember{{MemberID: request.MemberID}}
	if c.version >= 3 {
		leavers = leavers[:0]
		for i := range request.Members {
			leavers = append(leavers,
				groups.LeavingMember{
					MemberID:   request.Members[i].MemberID,
					InstanceID: instanceID(request.Members[i].InstanceID),
				})
		}
	}
	var failed []error
	err := c.onGroup(ctx, request.Group, useGroup, nil, false, func(caller groups.Caller) (err error) {
		failed, err = c.coordinator().Leave(c.group(request.Group), caller, leavers)
		return err
	})
	switch {
	case err != nil:
		response.ErrorCode = c.codeOf(err)
	case c.version < 3:
		response.ErrorCode = c.codeOf(failed[0])
	default:
		for i := range failed {
			row := kmsg.NewLeaveGroupResponseMember()
			row.MemberID, row.InstanceID, row.ErrorCode = request.Members[i].MemberID, request.Members[i].InstanceID,
				c.codeOf(failed[i])
			response.Members = append(response.Members, row)
		}
	}
	return nil
}

func describeGroups(ctx context.Context, c *call, request *kmsg.DescribeGroupsRequest,
	response *kmsg.DescribeGroupsResponse,
) error {
	ctx = access.WithBudget(ctx)
	limit, budget := checkRequestSize(len(request.Groups), 0), maxDescriptionBytes
	for _, name := range request.Groups {
		row := kmsg.NewDescribeGroupsResponseGroup()
		row.Group, row.AuthorizedOperations = name, operationsNotRequested
		err := limit
		if err == nil {
			var d groups.Description
			switch d, err = c.describe(ctx, name); {
			case err == nil && d.Type != groups.TypeClassic:
				err = fmt.Errorf("%w with the classic protocol; describe it with ConsumerGroupDescribe",
					groups.ErrNoGroup)
			case err == nil:
				if budget -= descriptionSize(&d); budget < 0 {
					err = errDescriptionSize
					break
				}
				fillDescription(&row, &d)
				if request.IncludeAuthorizedOperations {
					row.AuthorizedOperations = c.operationsOnGroup(ctx, &d)
				}
			}
		}
		if errors.Is(err, groups.ErrNoGroup) && c.version < 6 {
			row.State, err = "Dead", nil
		}
		if err != nil {
			row.ErrorCode, row.ErrorMessage = c.errorResponse(err)
			row.State = "Dead"
		}
		response.Groups = append(response.Groups, row)
	}
	return nil
}

// maxDescriptionBytes bounds the response to a description of groups. Each group may be large and occur
// more than once.
const maxDescriptionBytes = 64 << 20

var errDescriptionSize = fmt.Errorf("%w: description of the groups is too large; describe fewer of them", errInvalid)

// descriptionSize estimates the size of a group's description in bytes.
func descriptionSize(d *groups.Description) (n int) {
	for i := range d.Members {
		m := &d.Members[i]
		n += 128 + len(m.ID) + len(m.ClientID) + len(m.Metadata) + len(m.Assignment)
		if m.Consumer != nil {
			for _, name := range m.Consumer.Names {
				n += len(name) + 8
			}
			n += 64*len(m.Consumer.Topics) + 8*(len(m.Consumer.Assigned)+len(m.Consumer.Target))
		}
	}
	return n
}

func fillDescription(row *kmsg.DescribeGroupsResponseGroup, d *groups.Description) {
	row.State, row.ProtocolType, row.Protocol = d.State, d.ProtocolType, d.Protocol
	for _, m := range d.Members {
		member := kmsg.NewDescribeGroupsResponseGroupMember()
		member.MemberID, member.ClientID, member.ClientHost = m.ID, m.ClientID, m.ClientHost
		member.ProtocolMetadata, member.MemberAssignment = orEmpty(m.Metadata), orEmpty(m.Assignment)
		if m.Static {
			member.InstanceID = text(m.InstanceID)
		}
		row.Members = append(row.Members, member)
	}
}

func orEmpty(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// lowerCaseSet returns the set of words in lower case.
func lowerCaseSet(list []string) map[string]bool {
	set := make(map[string]bool)
	for _, word := range list {
		set[strings.ToLower(cut(word, 64))] = true
	}
	return set
}

func listGroups(ctx context.Context, c *call, request *kmsg.ListGroupsRequest,
	response *kmsg.ListGroupsResponse,
) error {
	states, types := lowerCaseSet(request.StatesFilter), lowerCaseSet(request.TypesFilter)
	wants := func(filter map[string]bool, value string) bool {
		return len(filter) == 0 || filter[strings.ToLower(value)]
	}
	quiet := *c
	quiet.unaudited = true
	ctx = access.WithBudget(ctx)
	if c.version >= 5 && wants(types, groups.TypeShare) { // older versions have no types
		shared, err := c.listShareGroups(ctx)
		if err != nil {
			response.ErrorCode = c.codeOf(err)
			return nil
		}
		for i := range shared {
			if wants(states, shared[i].GroupState) {
				response.Groups = append(response.Groups, shared[i])
			}
		}
	}
	for _, g := range c.coordinator().List(c.session.namespace.Tenant) {
		if !wants(states, g.State) || !wants(types, g.Type) ||
			quiet.authorizeGroup(ctx, g.Key.Group, describeGroup) != nil {
			continue
		}
		row := kmsg.NewListGroupsResponseGroup()
		row.Group, row.ProtocolType, row.GroupState, row.GroupType = g.Key.Group, g.ProtocolType, g.State, g.Type
		response.Groups = append(response.Groups, row)
	}
	return nil
}

func deleteGroups(ctx context.Context, c *call, request *kmsg.DeleteGroupsRequest,
	response *kmsg.DeleteGroupsResponse,
) error {
	limit := checkRequestSize(len(request.Groups), 0)
	for _, name := range request.Groups {
		row := kmsg.NewDeleteGroupsResponseGroup()
		row.Group = name
		err := limit
		if err == nil {
			err = c.deleteGroup(ctx, name)
		}
		row.ErrorCode = c.codeOf(err)
		response.Groups = append(response.Groups, row)
	}
	return nil
}

// deleteGroup deletes a consumer group, or else the share group of that name.
func (c *call) deleteGroup(ctx context.Context, name string) error {
	if _, err := c.coordinator().Describe(c.group(name)); errors.Is(err, groups.ErrNoGroup) {
		if shared, err := c.deleteShareGroup(ctx, name); shared || err != nil {
			c.auditAllowed(permitDeleteSubscription, c.groupScope(name), err)
			return err
		}
	}
	if err := c.authorizeGroup(ctx, name, deleteGroup); err != nil {
		return err
	}
	err := c.onGroup(ctx, name, deleteGroup, nil, false, func(caller groups.Caller) error {
		return c.coordinator().Delete(ctx, c.group(name), caller.May)
	})
	c.auditAllowed(permitDeleteSubscription, c.groupScope(name), err)
	return err
}
