package kafkaapi

import (
	"context"

	"freshet/internal/base/names"
	"freshet/internal/broker/groups"
	"freshet/internal/identity/access"
)

// operation is an operation of Kafka ACLs. The number is its bit in authorized operations.
type operation uint8

const (
	opRead            operation = 3
	opWrite           operation = 4
	opCreate          operation = 5
	opDelete          operation = 6
	opAlter           operation = 7
	opDescribe        operation = 8
	opDescribeConfigs operation = 10
	opAlterConfigs    operation = 11
	opIdempotentWrite operation = 12
)

// operationRule is a row of docs/spec/stream.md#permissions: an operation, and the permissions of which
// any one allows it.
type operationRule struct {
	op    operation
	anyOf []access.Permission
}

var (
	topicOperations = []operationRule{
		{opRead, []access.Permission{permitConsume}},
		{opWrite, []access.Permission{permitProduce}},
		{opCreate, []access.Permission{permitCreate}},
		{opDelete, []access.Permission{permitDelete}},
		{opAlter, []access.Permission{permitUpdate}},
		{opAlterConfigs, []access.Permission{permitUpdate}},
		{opDescribe, describePermissions},
		{opDescribeConfigs, describePermissions},
	}
	// groupOperations are allowed by these permissions on the group, or by a permission on each of its topics,
	// see groupRules.
	groupOperations = []operationRule{
		{opRead, useGroup.onGroup},
		{opDescribe, describeGroup.onGroup},
		{opDelete, deleteGroup.onGroup},
	}
	groupRules = map[operation]groupRule{opRead: useGroup, opDescribe: describeGroup, opDelete: deleteGroup}
)

// operations returns the bits of the rows that the caller is allowed. It does not audit denials.
func (c *call) operations(rows []operationRule, may func(quiet *call, wanted []access.Permission) error) (bits int32) {
	quiet := *c
	quiet.unaudited = true
	for _, row := range rows {
		if may(&quiet, row.anyOf) == nil {
			bits |= 1 << row.op
		}
	}
	return bits
}

func (c *call) operationsOnTopic(ctx context.Context, name names.Topic) int32 {
	return c.operations(topicOperations, func(quiet *call, wanted []access.Permission) error {
		return quiet.authorizeTopic(ctx, name, wanted...)
	})
}

func (c *call) operationsOnGroup(ctx context.Context, d *groups.Description) (bits int32) {
	quiet := *c
	quiet.unaudited = true
	for op, rule := range groupRules {
		if quiet.authorizeReads(ctx, d.Key.Group, rule, d.Reads) == nil {
			bits |= 1 << op
		}
	}
	return bits
}

// operationsOnCluster returns the operations on the cluster. Every authenticated caller may
// describe it.
func (c *call) operationsOnCluster() int32 {
	return 1<<opDescribe | 1<<opDescribeConfigs | c.operations(clusterOperations,
		func(quiet *call, wanted []access.Permission) error {
			return quiet.authorizeCluster(wanted[0])
		})
}
