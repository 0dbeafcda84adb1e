package kafkaapi

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Keys of the APIs that are allowed before authentication.
const (
	keySASLHandshake    int16 = 17
	keyAPIVersions      int16 = 18
	keySASLAuthenticate int16 = 36
)

// api is a row of docs/spec/stream.md#apis.
type api struct {
	name     string
	min, max int16 // advertised
	served   int16 // smallest version that is supported; librdkafka needs the lower min
	soon     bool  // building the response waits for nothing but the disk
	take     func(ctx context.Context, c *call) answer
}

// call is a request in progress.
type call struct {
	header
	conn     *conn
	session  *session
	request  kmsg.Request
	reserved holding // memory of the response
	// unaudited means that a denied permission is not audited, because it only omits an entry of a
	// list.
	unaudited bool
}

// allAPIs returns all supported APIs. ApiVersions advertises exactly these.
func allAPIs() map[int16]api {
	return map[int16]api{
		0:  {name: "Produce", max: 13, served: 3, take: takeProduce},
		1:  {name: "Fetch", min: 4, max: 17, served: 4, take: takeFetch},
		2:  {name: "ListOffsets", min: 1, max: 10, served: 1, take: handle(listOffsets)},
		3:  {name: "Metadata", max: 13, take: describe(metadata)},
		8:  {name: "OffsetCommit", min: 2, max: 10, served: 2, soon: true, take: handle(offsetCommit)},
		9:  {name: "OffsetFetch", min: 1, max: 10, served: 1, take: describe(offsetFetch)},
		10: {name: "FindCoordinator", max: 6, soon: true, take: handle(findCoordinator)},
		11: {name: "JoinGroup", max: 9, take: handle(joinGroup)},
		12: {name: "Heartbeat", max: 4, soon: true, take: handle(heartbeat)},
		13: {name: "LeaveGroup", max: 5, take: handle(leaveGroup)},
		14: {name: "SyncGroup", max: 5, take: handle(syncGroup)},
		15: {name: "DescribeGroups", max: 6, take: describe(describeGroups)},
		16: {name: "ListGroups", max: 5, take: describe(listGroups)},
		19: {name: "CreateTopics", max: 7, take: handle(createTopics)},
		20: {name: "DeleteTopics", max: 6, take: handle(deleteTopics)},
		21: {name: "DeleteRecords", max: 2, take: handle(deleteRecords)},
		22: {name: "InitProducerId", max: 5, take: handle(initProducerID)},
		23: {name: "OffsetForLeaderEpoch", min: 2, max: 4, served: 2, take: handle(offsetForLeaderEpoch)},
		29: {name: "DescribeAcls", min: 1, max: 3, served: 1, take: describe(describeACLs)},
		32: {name: "DescribeConfigs", max: 4, take: describe(describeConfigs)},
		33: {name: "AlterConfigs", max: 2, take: handle(alterConfigs)},
		35: {name: "DescribeLogDirs", min: 1, max: 4, served: 1, take: describe(describeLogDirs)},
		37: {name: "CreatePartitions", max: 3, take: handle(createPartitions)},
		42: {name: "DeleteGroups", max: 2, take: handle(deleteGroups)},
		44: {name: "IncrementalAlterConfigs", max: 1, take: handle(incrementalAlterConfigs)},
		47: {name: "OffsetDelete", take: handle(offsetDelete)},
		60: {name: "DescribeCluster", max: 2, take: handle(describeCluster)},
		61: {name: "DescribeProducers", take: describe(describeProducers)},
		68: {name: "ConsumerGroupHeartbeat", max: 1, soon: true, take: handle(consumerGroupHeartbeat)},
		69: {name: "ConsumerGroupDescribe", max: 1, take: describe(consumerGroupDescribe)},
		74: {name: "ListConfigResources", max: 1, take: handle(listConfigResources)},
		75: {name: "DescribeTopicPartitions", take: describe(describeTopicPartitions)},

		keySASLHandshake:    {name: "SaslHandshake", max: 1, take: takeSASLHandshake},
		keyAPIVersions:      {name: "ApiVersions", max: 4, take: takeAPIVersions},
		keySASLAuthenticate: {name: "SaslAuthenticate", max: 2, take: takeSASLAuthenticate},
	}
}

// name returns the name of the call's API.
func (c *call) name() string { return c.conn.server.apis[c.key].name }

// now returns a queued response that make builds when it is due.
func now(make func(ctx context.Context) (encodable, error)) answer {
	return answer{make: make}
}
