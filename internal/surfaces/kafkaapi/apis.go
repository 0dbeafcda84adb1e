package kafkaapi

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// keyProduce is the key of the API with the largest requests.
const keyProduce int16 = 0

// Keys of the APIs that are allowed before authentication.
const (
	keySASLHandshake    int16 = 17
	keyAPIVersions      int16 = 18
	keySASLAuthenticate int16 = 36
)

// api is a row of docs/spec/stream.md#apis.
type api struct {
	name         string
	min, max     int16 // advertised
	minSupported int16 // smallest version that is supported; librdkafka needs the lower min
	// topicIDsSince is the first version that identifies topics by id only; 0 means none.
	topicIDsSince int16
	immediate     bool // building the response waits for nothing but the disk
	waits         bool // building the response may wait for other clients
	begin         func(ctx context.Context, c *call) pendingResponse
}

// call is a request in progress.
type call struct {
	header
	conn    *conn
	session *session
	request kmsg.Request
	room    responseRoom // room of the response
	// unaudited means that a denied permission is not audited, because it only omits an entry of a
	// list.
	unaudited bool
}

// allAPIs returns all supported APIs. ApiVersions advertises exactly these.
func allAPIs() map[int16]api {
	return map[int16]api{
		0: {name: "Produce", max: 13, minSupported: 3, topicIDsSince: 13, begin: beginProduce},
		1: {name: "Fetch", min: 4, max: 17, minSupported: 4, topicIDsSince: 13, waits: true, begin: beginFetch},
		2: {name: "ListOffsets", min: 1, max: 10, minSupported: 1, begin: handle(listOffsets)},
		3: {name: "Metadata", max: 13, begin: describe(metadata)},
		8: {
			name: "OffsetCommit", min: 2, max: 10, minSupported: 2, topicIDsSince: 10, immediate: true,
			begin: handle(offsetCommit),
		},
		9:  {name: "OffsetFetch", min: 1, max: 10, minSupported: 1, topicIDsSince: 10, begin: describe(offsetFetch)},
		10: {name: "FindCoordinator", max: 6, immediate: true, begin: handle(findCoordinator)},
		11: {name: "JoinGroup", max: 9, waits: true, begin: handle(joinGroup)},
		12: {name: "Heartbeat", max: 4, immediate: true, begin: handle(heartbeat)},
		13: {name: "LeaveGroup", max: 5, begin: handle(leaveGroup)},
		14: {name: "SyncGroup", max: 5, waits: true, begin: handle(syncGroup)},
		15: {name: "DescribeGroups", max: 6, begin: describe(describeGroups)},
		16: {name: "ListGroups", max: 5, begin: describe(listGroups)},
		19: {name: "CreateTopics", max: 7, begin: handle(createTopics)},
		20: {name: "DeleteTopics", max: 6, begin: handle(deleteTopics)},
		21: {name: "DeleteRecords", max: 2, begin: handle(deleteRecords)},
		22: {name: "InitProducerId", max: 5, begin: handle(initProducerID)},
		23: {name: "OffsetForLeaderEpoch", min: 2, max: 4, minSupported: 2, begin: handle(offsetForLeaderEpoch)},
		29: {name: "DescribeAcls", min: 1, max: 3, minSupported: 1, begin: describe(describeACLs)},
		32: {name: "DescribeConfigs", max: 4, begin: describe(describeConfigs)},
		33: {name: "AlterConfigs", max: 2, begin: handle(alterConfigs)},
		35: {name: "DescribeLogDirs", min: 1, max: 4, minSupported: 1, begin: describe(describeLogDirs)},
		37: {name: "CreatePartitions", max: 3, begin: handle(createPartitions)},
		42: {name: "DeleteGroups", max: 2, begin: handle(deleteGroups)},
		44: {name: "IncrementalAlterConfigs", max: 1, begin: handle(incrementalAlterConfigs)},
		47: {name: "OffsetDelete", begin: handle(offsetDelete)},
		60: {name: "DescribeCluster", max: 2, begin: handle(describeCluster)},
		61: {name: "DescribeProducers", begin: describe(describeProducers)},
		68: {name: "ConsumerGroupHeartbeat", max: 1, immediate: true, begin: handle(consumerGroupHeartbeat)},
		69: {name: "ConsumerGroupDescribe", max: 1, begin: describe(consumerGroupDescribe)},
		74: {name: "ListConfigResources", max: 1, begin: handle(listConfigResources)},
		75: {name: "DescribeTopicPartitions", begin: describe(describeTopicPartitions)},

		76: {name: "ShareGroupHeartbeat", min: 1, max: 1, minSupported: 1, begin: handle(shareGroupHeartbeat)},
		77: {name: "ShareGroupDescribe", min: 1, max: 1, minSupported: 1, begin: describe(shareGroupDescribe)},
		78: {name: "ShareFetch", min: 1, max: 2, minSupported: 1, waits: true, begin: handle(shareFetch)},
		79: {name: "ShareAcknowledge", min: 1, max: 2, minSupported: 1, begin: handle(shareAcknowledge)},
		90: {name: "DescribeShareGroupOffsets", max: 1, begin: describe(describeShareGroupOffsets)},
		91: {name: "AlterShareGroupOffsets", begin: handle(alterShareGroupOffsets)},
		92: {name: "DeleteShareGroupOffsets", begin: handle(deleteShareGroupOffsets)},

		keySASLHandshake:    {name: "SaslHandshake", max: 1, begin: beginSASLHandshake},
		keyAPIVersions:      {name: "ApiVersions", max: 4, begin: beginAPIVersions},
		keySASLAuthenticate: {name: "SaslAuthenticate", max: 2, begin: beginSASLAuthenticate},
	}
}

// name returns the name of the call's API.
func (c *call) name() string { return c.conn.server.apis[c.key].name }

// whenDue returns a queued response that make builds when it is due.
func whenDue(make func(ctx context.Context) (encodable, error)) pendingResponse {
	return pendingResponse{build: make}
}
