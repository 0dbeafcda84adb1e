package kafkaapi_test

import "github.com/twmb/franz-go/pkg/kmsg"

// shareMatrix has the rows of the APIs of share groups.
var shareMatrix = map[int16]groupRow{
	76: {
		attempts: shareHeartbeatAttempts, of: shareGroups,
		code: func(r kmsg.Response, _ string) (int16, bool) {
			response := r.(*kmsg.ShareGroupHeartbeatResponse)
			return response.ErrorCode, response.Assignment != nil
		},
		allowed: []int16{codeGroupDenied, codeUnknownMember, codeTopicDenied}, sameWhenMissing: true,
	},
	77: {
		attempts: func(_ int16, at *groupTarget) []kmsg.Request {
			r := kmsg.NewPtrShareGroupDescribeRequest()
			r.GroupIDs, r.IncludeAuthorizedOperations = []string{at.name}, true
			return []kmsg.Request{r}
		},
		of: shareGroups,
		code: func(r kmsg.Response, _ string) (int16, bool) {
			group := r.(*kmsg.ShareGroupDescribeResponse).Groups[0]
			return group.ErrorCode, len(group.Members) > 0 || group.AuthorizedOperations > 0 || group.GroupState != ""
		},
		allowed: []int16{codeGroupDenied}, sameWhenMissing: true,
	},
	78: {
		attempts: shareFetchAttempts, of: shareGroups, code: shareFetchCode,
		allowed: []int16{codeGroupDenied, codeTopicDenied, 100, 122}, sameWhenMissing: true,
	},
	79: {
		attempts: shareAcknowledgeAttempts, of: shareGroups,
		code: func(r kmsg.Response, _ string) (int16, bool) {
			return r.(*kmsg.ShareAcknowledgeResponse).ErrorCode, false
		},
		allowed: []int16{codeGroupDenied, 122}, sameWhenMissing: true,
	},
	90: {
		attempts: shareOffsetsAttempts, of: shareGroups,
		code: func(r kmsg.Response, _ string) (int16, bool) {
			group := r.(*kmsg.DescribeShareGroupOffsetsResponse).Groups[0]
			if group.ErrorCode != 0 || len(group.Topics) == 0 {
				return group.ErrorCode, false
			}
			part := group.Topics[0].Partitions[0]
			return part.ErrorCode, part.StartOffset > 0 || part.Lag > 0 || group.Topics[0].TopicID != [16]byte{}
		},
		allowed: []int16{codeGroupDenied, codeTopicDenied}, sameWhenMissing: true,
	},
	91: {
		attempts: func(_ int16, at *groupTarget) []kmsg.Request {
			r := kmsg.NewPtrAlterShareGroupOffsetsRequest()
			r.GroupID = at.name
			r.Topics = []kmsg.AlterShareGroupOffsetsRequestTopic{{
				Topic: "orders", Partitions: []kmsg.AlterShareGroupOffsetsRequestTopicPartition{{}},
			}}
			return []kmsg.Request{r}
		},
		of: shareGroups,
		code: func(r kmsg.Response, _ string) (int16, bool) {
			response := r.(*kmsg.AlterShareGroupOffsetsResponse)
			if response.ErrorCode != 0 {
				return response.ErrorCode, false
			}
			return response.Topics[0].Partitions[0].ErrorCode, response.Topics[0].TopicID != [16]byte{}
		},
		allowed: []int16{codeGroupDenied, codeTopicDenied}, sameWhenMissing: true,
	},
	92: {
		attempts: func(_ int16, at *groupTarget) []kmsg.Request {
			r := kmsg.NewPtrDeleteShareGroupOffsetsRequest()
			r.GroupID, r.Topics = at.name, []kmsg.DeleteShareGroupOffsetsRequestTopic{{Topic: "orders"}}
			return []kmsg.Request{r}
		},
		of: shareGroups,
		code: func(r kmsg.Response, _ string) (int16, bool) {
			response := r.(*kmsg.DeleteShareGroupOffsetsResponse)
			if response.ErrorCode != 0 {
				return response.ErrorCode, false
			}
			return response.Topics[0].ErrorCode, response.Topics[0].TopicID != [16]byte{}
		},
		allowed: []int16{codeGroupDenied, codeTopicDenied}, sameWhenMissing: true,
	},
}

// shareHeartbeatAttempts joins with the topic of the group, as a new member and as the member, and then stays and
// leaves.
func shareHeartbeatAttempts(_ int16, at *groupTarget) (all []kmsg.Request) {
	for _, member := range []string{"attacker", at.member} {
		for _, epoch := range []int32{0, at.generation, -1} {
			r := kmsg.NewPtrShareGroupHeartbeatRequest()
			r.GroupID, r.MemberID, r.MemberEpoch = at.name, member, epoch
			if epoch == 0 {
				r.SubscribedTopicNames = []string{"orders"}
			}
			all = append(all, r)
		}
	}
	return all
}

// shareFetchAttempts opens a session as a new member and as the member, and continues and closes it.
func shareFetchAttempts(_ int16, at *groupTarget) (all []kmsg.Request) {
	for _, member := range []string{"attacker", at.member} {
		for _, epoch := range []int32{0, 1, -1} {
			r := kmsg.NewPtrShareFetchRequest()
			r.GroupID, r.MemberID, r.ShareSessionEpoch = &at.name, &member, epoch
			r.MaxRecords, r.MaxBytes = 10, 1<<20
			topic := kmsg.NewShareFetchRequestTopic()
			topic.TopicID, topic.Partitions = at.read, []kmsg.ShareFetchRequestTopicPartition{{}}
			r.Topics = append(r.Topics, topic)
			all = append(all, r)
		}
	}
	return all
}

func shareFetchCode(r kmsg.Response, _ string) (int16, bool) {
	response := r.(*kmsg.ShareFetchResponse)
	if response.ErrorCode != 0 || len(response.Topics) == 0 {
		if response.ErrorCode == 0 {
			return 122, false // it closed a session without records
		}
		return response.ErrorCode, false
	}
	part := response.Topics[0].Partitions[0]
	return part.ErrorCode, len(part.Records) > 0 || len(part.AcquiredRecords) > 0
}

// shareAcknowledgeAttempts accepts the first record.
func shareAcknowledgeAttempts(_ int16, at *groupTarget) (all []kmsg.Request) {
	for _, member := range []string{"attacker", at.member} {
		for _, epoch := range []int32{1, 2, -1} {
			r := kmsg.NewPtrShareAcknowledgeRequest()
			r.GroupID, r.MemberID, r.ShareSessionEpoch = &at.name, &member, epoch
			topic := kmsg.NewShareAcknowledgeRequestTopic()
			topic.TopicID = at.read
			part := kmsg.NewShareAcknowledgeRequestTopicPartition()
			part.AcknowledgementBatches = []kmsg.ShareAcknowledgeRequestTopicPartitionAcknowledgementBatch{
				{AcknowledgeTypes: []int8{1}},
			}
			topic.Partitions = append(topic.Partitions, part)
			r.Topics = append(r.Topics, topic)
			all = append(all, r)
		}
	}
	return all
}

func shareOffsetsAttempts(_ int16, at *groupTarget) (all []kmsg.Request) {
	for _, topics := range [][]kmsg.DescribeShareGroupOffsetsRequestGroupTopic{
		nil, {{Topic: "orders", Partitions: []int32{0}}},
	} {
		r := kmsg.NewPtrDescribeShareGroupOffsetsRequest()
		r.Groups = []kmsg.DescribeShareGroupOffsetsRequestGroup{{GroupID: at.name, Topics: topics}}
		all = append(all, r)
	}
	return all
}

// shareReader makes a share consumer of the topic orders join a group.
func (r *rawClient) shareReader(group string) (member string) {
	r.Helper()
	member = group + "-reader"
	join := kmsg.NewPtrShareGroupHeartbeatRequest()
	join.Version, join.GroupID, join.MemberID, join.SubscribedTopicNames = 1, group, member, []string{"orders"}
	joined := roundTrip[*kmsg.ShareGroupHeartbeatResponse](r, join)
	if joined.ErrorCode != 0 || joined.Assignment == nil || len(joined.Assignment.TopicPartitions) != 1 {
		r.Fatalf("joining %s: got %+v, want an assignment", group, joined)
	}
	return member
}
