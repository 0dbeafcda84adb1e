package kafkaapi_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
	"freshet/test/tally"
)

// Error codes of the Kafka protocol that a denied call on a group may get.
const (
	codeUnknownMember int16 = 25
	codeTopicDenied   int16 = 29
	codeGroupDenied   int16 = 30
)

// groupTarget is a group that an attacker acts on, and a member of it.
type groupTarget struct {
	name, member, instance string
	generation             int32
	share                  bool     // it is a share group
	topic                  string   // that the attacker may consume
	topicID                [16]byte // of that topic
	read                   [16]byte // id of the topic orders, which the group reads
}

// groupRow is an API in the matrix of principals, APIs and groups.
type groupRow struct {
	// attempts returns requests on a group in one version; nil for an API without groups.
	attempts func(version int16, at *groupTarget) []kmsg.Request
	// code returns the code of a response, and whether the response shows the group.
	code func(response kmsg.Response, group string) (code int16, shown bool)
	// allowed are the codes that a caller without permission on an existing group may get.
	allowed []int16
	// of is the kind of groups that the API is about.
	of groupKind
	// sameWhenMissing means that the code for a group that does not exist is the same.
	sameWhenMissing bool
}

// groupKind is a kind of groups.
type groupKind uint8

const (
	consumerGroups groupKind = iota
	shareGroups
	allGroups
)

// has reports whether a group is of a kind.
func (k groupKind) has(at *groupTarget) bool {
	return k == allGroups || k == shareGroups && at.share || k == consumerGroups && !at.share
}

// withoutGroups is the row of an API that neither reads nor changes groups.
var withoutGroups = groupRow{}

// groupMatrix has, together with shareMatrix, a row for every API that the server advertises.
var groupMatrix = map[int16]groupRow{
	0: withoutGroups, 1: withoutGroups, 2: withoutGroups, 3: withoutGroups, // Produce, Fetch, ListOffsets, Metadata
	17: withoutGroups, 18: withoutGroups, 36: withoutGroups, // SaslHandshake, ApiVersions, SaslAuthenticate
	19: withoutGroups, 20: withoutGroups, 21: withoutGroups, 37: withoutGroups, // topics, records, partitions
	22: withoutGroups, 23: withoutGroups, 61: withoutGroups, // InitProducerId, OffsetForLeaderEpoch, DescribeProducers
	29: withoutGroups, 35: withoutGroups, 60: withoutGroups, // DescribeAcls, DescribeLogDirs, DescribeCluster
	74: withoutGroups, 75: withoutGroups, // ListConfigResources, DescribeTopicPartitions
	8: {
		attempts: commitAttempts,
		code: func(r kmsg.Response, _ string) (int16, bool) {
			return r.(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode, false
		},
		allowed: []int16{codeGroupDenied, codeUnknownMember, codeTopicDenied},
	},
	9: {
		attempts: offsetFetchAttempts,
		code: func(r kmsg.Response, _ string) (int16, bool) {
			response := r.(*kmsg.OffsetFetchResponse)
			if response.Version < 2 {
				return response.Topics[0].Partitions[0].ErrorCode, false
			}
			if response.Version < 8 {
				return response.ErrorCode, len(response.Topics) > 0
			}
			return response.Groups[0].ErrorCode, len(response.Groups[0].Topics) > 0
		},
		allowed: []int16{codeGroupDenied},
	},
	10: {
		attempts: func(_ int16, at *groupTarget) []kmsg.Request {
			r := kmsg.NewPtrFindCoordinatorRequest()
			r.CoordinatorKey, r.CoordinatorKeys = at.name, []string{at.name}
			return []kmsg.Request{r}
		},
		code: func(r kmsg.Response, _ string) (int16, bool) {
			response := r.(*kmsg.FindCoordinatorResponse)
			if response.Version < 4 {
				return response.ErrorCode, false
			}
			return response.Coordinators[0].ErrorCode, false
		},
		of: allGroups, allowed: []int16{0, codeGroupDenied}, sameWhenMissing: true, // it depends on the name only
	},
	11: {
		attempts: joinAttempts,
		code: func(r kmsg.Response, _ string) (int16, bool) {
			response := r.(*kmsg.JoinGroupResponse)
			return response.ErrorCode, len(response.Members) > 0
		},
		allowed: []int16{codeGroupDenied, codeUnknownMember},
	},
	12: {
		attempts: func(_ int16, at *groupTarget) []kmsg.Request {
			r := kmsg.NewPtrHeartbeatRequest()
			r.Group, r.MemberID, r.Generation = at.name, at.member, at.generation
			return []kmsg.Request{r}
		},
		code:    func(r kmsg.Response, _ string) (int16, bool) { return r.(*kmsg.HeartbeatResponse).ErrorCode, false },
		allowed: []int16{codeGroupDenied, codeUnknownMember}, sameWhenMissing: true,
	},
	13: {
		attempts: leaveAttempts,
		code: func(r kmsg.Response, _ string) (int16, bool) {
			response := r.(*kmsg.LeaveGroupResponse)
			if response.ErrorCode != 0 || response.Version < 3 {
				return response.ErrorCode, false
			}
			return response.Members[0].ErrorCode, false
		},
		allowed: []int16{codeGroupDenied, codeUnknownMember}, sameWhenMissing: true,
	},
	14: {
		attempts: func(_ int16, at *groupTarget) []kmsg.Request {
			r := kmsg.NewPtrSyncGroupRequest()
			r.Group, r.MemberID, r.Generation = at.name, at.member, at.generation
			r.ProtocolType, r.Protocol = str("consumer"), str("range")
			return []kmsg.Request{r}
		},
		code: func(r kmsg.Response, _ string) (int16, bool) {
			response := r.(*kmsg.SyncGroupResponse)
			return response.ErrorCode, len(response.MemberAssignment) > 0
		},
		allowed: []int16{codeGroupDenied, codeUnknownMember}, sameWhenMissing: true,
	},
	15: {
		attempts: func(version int16, at *groupTarget) []kmsg.Request {
			r := kmsg.NewPtrDescribeGroupsRequest()
			r.Groups, r.IncludeAuthorizedOperations = []string{at.name}, version >= 3
			return []kmsg.Request{r}
		},
		code: func(r kmsg.Response, _ string) (int16, bool) {
			group := r.(*kmsg.DescribeGroupsResponse).Groups[0]
			return group.ErrorCode, len(group.Members) > 0 || group.AuthorizedOperations > 0
		},
		of: allGroups, allowed: []int16{codeGroupDenied}, sameWhenMissing: true,
	},
	16: {
		attempts: func(int16, *groupTarget) []kmsg.Request { return []kmsg.Request{kmsg.NewPtrListGroupsRequest()} },
		code: func(r kmsg.Response, name string) (int16, bool) {
			response := r.(*kmsg.ListGroupsResponse)
			return response.ErrorCode, slices.ContainsFunc(response.Groups,
				func(g kmsg.ListGroupsResponseGroup) bool { return g.Group == name })
		},
		of: allGroups, allowed: []int16{0}, sameWhenMissing: true,
	},
	32: {
		attempts: func(_ int16, at *groupTarget) []kmsg.Request {
			r := kmsg.NewPtrDescribeConfigsRequest()
			resource := kmsg.NewDescribeConfigsRequestResource()
			resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeGroupConfig, at.name
			r.Resources = append(r.Resources, resource)
			return []kmsg.Request{r}
		},
		code: func(r kmsg.Response, _ string) (int16, bool) {
			resource := r.(*kmsg.DescribeConfigsResponse).Resources[0]
			return resource.ErrorCode, len(resource.Configs) > 0
		},
		of: allGroups, allowed: []int16{codeGroupDenied}, sameWhenMissing: true,
	},
	33: {
		attempts: func(_ int16, at *groupTarget) []kmsg.Request {
			r := kmsg.NewPtrAlterConfigsRequest()
			resource := kmsg.NewAlterConfigsRequestResource()
			resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeGroupConfig, at.name
			r.Resources = append(r.Resources, resource)
			return []kmsg.Request{r}
		},
		code: func(r kmsg.Response, _ string) (int16, bool) {
			return r.(*kmsg.AlterConfigsResponse).Resources[0].ErrorCode, false
		},
		of: allGroups, allowed: []int16{codeGroupDenied, 44}, sameWhenMissing: true, // nobody can replace all
	},
	42: {
		attempts: func(_ int16, at *groupTarget) []kmsg.Request {
			r := kmsg.NewPtrDeleteGroupsRequest()
			r.Groups = []string{at.name}
			return []kmsg.Request{r}
		},
		code: func(r kmsg.Response, _ string) (int16, bool) {
			return r.(*kmsg.DeleteGroupsResponse).Groups[0].ErrorCode, false
		},
		of: allGroups, allowed: []int16{codeGroupDenied}, sameWhenMissing: true,
	},
	44: {
		attempts: func(_ int16, at *groupTarget) []kmsg.Request {
			r := kmsg.NewPtrIncrementalAlterConfigsRequest()
			resource := kmsg.NewIncrementalAlterConfigsRequestResource()
			resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeGroupConfig, at.name
			config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
			config.Name, config.Value = "share.auto.offset.reset", str("earliest")
			resource.Configs = append(resource.Configs, config)
			r.Resources = append(r.Resources, resource)
			return []kmsg.Request{r}
		},
		code: func(r kmsg.Response, _ string) (int16, bool) {
			return r.(*kmsg.IncrementalAlterConfigsResponse).Resources[0].ErrorCode, false
		},
		of: allGroups, allowed: []int16{codeGroupDenied}, sameWhenMissing: true,
	},
	47: {
		attempts: func(_ int16, at *groupTarget) []kmsg.Request {
			r := kmsg.NewPtrOffsetDeleteRequest()
			r.Group = at.name
			r.Topics = []kmsg.OffsetDeleteRequestTopic{{
				Topic: at.topic, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}},
			}}
			return []kmsg.Request{r}
		},
		code: func(r kmsg.Response, _ string) (int16, bool) {
			return r.(*kmsg.OffsetDeleteResponse).ErrorCode, false
		},
		allowed: []int16{codeGroupDenied}, sameWhenMissing: true,
	},
	68: {
		attempts: consumerHeartbeatAttempts,
		code: func(r kmsg.Response, _ string) (int16, bool) {
			response := r.(*kmsg.ConsumerGroupHeartbeatResponse)
			return response.ErrorCode, response.Assignment != nil
		},
		allowed: []int16{codeGroupDenied, codeUnknownMember, codeTopicDenied},
	},
	69: {
		attempts: func(_ int16, at *groupTarget) []kmsg.Request {
			r := kmsg.NewPtrConsumerGroupDescribeRequest()
			r.Groups, r.IncludeAuthorizedOperations = []string{at.name}, true
			return []kmsg.Request{r}
		},
		code: func(r kmsg.Response, _ string) (int16, bool) {
			group := r.(*kmsg.ConsumerGroupDescribeResponse).Groups[0]
			return group.ErrorCode, len(group.Members) > 0 || group.AuthorizedOperations > 0
		},
		of: allGroups, allowed: []int16{codeGroupDenied}, sameWhenMissing: true,
	},
}

// commitAttempts commits as the member, as nobody in particular, and for a generation without a member.
func commitAttempts(_ int16, at *groupTarget) (all []kmsg.Request) {
	for _, by := range []struct {
		member     string
		generation int32
	}{{at.member, at.generation}, {"", -1}, {at.member, -1}} {
		r := kmsg.NewPtrOffsetCommitRequest()
		r.Group, r.MemberID, r.Generation = at.name, by.member, by.generation
		topic := kmsg.NewOffsetCommitRequestTopic()
		topic.Topic, topic.TopicID = at.topic, at.topicID
		part := kmsg.NewOffsetCommitRequestTopicPartition()
		topic.Partitions = append(topic.Partitions, part)
		r.Topics = append(r.Topics, topic)
		all = append(all, r)
	}
	return all
}

func offsetFetchAttempts(version int16, at *groupTarget) (all []kmsg.Request) {
	some := kmsg.NewPtrOffsetFetchRequest()
	some.Group = at.name
	some.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: at.topic, Partitions: []int32{0}}}
	group := kmsg.NewOffsetFetchRequestGroup()
	group.Group, group.MemberEpoch = at.name, -1
	topic := kmsg.NewOffsetFetchRequestGroupTopic()
	topic.Topic, topic.TopicID, topic.Partitions = at.topic, at.topicID, []int32{0}
	group.Topics = append(group.Topics, topic)
	some.Groups = append(some.Groups, group)
	if all = append(all, some); version >= 2 {
		every := kmsg.NewPtrOffsetFetchRequest()
		every.Group = at.name
		group.Topics = nil
		every.Groups = append(every.Groups, group)
		all = append(all, every)
	}
	return all
}

// joinAttempts joins as a new member and as the member, with the attacker's own topic.
func joinAttempts(version int16, at *groupTarget) (all []kmsg.Request) {
	for _, member := range []string{"", at.member} {
		r := kmsg.NewPtrJoinGroupRequest()
		r.Group, r.MemberID, r.ProtocolType = at.name, member, "consumer"
		r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = 10_000, 10_000
		if at.instance != "" && version >= 5 {
			r.InstanceID = str(at.instance)
		}
		r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: subscriptionTo(at.topic)}}
		all = append(all, r)
	}
	return all
}

func leaveAttempts(version int16, at *groupTarget) []kmsg.Request {
	byID := kmsg.NewPtrLeaveGroupRequest()
	byID.Group, byID.MemberID = at.name, at.member
	leaver := kmsg.NewLeaveGroupRequestMember()
	leaver.MemberID = at.member
	byID.Members = append(byID.Members, leaver)
	if at.instance == "" || version < 3 {
		return []kmsg.Request{byID}
	}
	byInstance := kmsg.NewPtrLeaveGroupRequest()
	byInstance.Group = at.name
	leaver.MemberID, leaver.InstanceID = "", str(at.instance)
	byInstance.Members = append(byInstance.Members, leaver)
	return []kmsg.Request{byID, byInstance}
}

// consumerHeartbeatAttempts joins with the attacker's own topic and with a pattern, and then stays and leaves as the
// member.
func consumerHeartbeatAttempts(version int16, at *groupTarget) (all []kmsg.Request) {
	for _, epoch := range []int32{0, at.generation, -1} {
		r := kmsg.NewPtrConsumerGroupHeartbeatRequest()
		r.Group, r.MemberID, r.MemberEpoch, r.RebalanceTimeoutMillis = at.name, at.member, epoch, -1
		if epoch == 0 {
			r.RebalanceTimeoutMillis, r.Topics = 10_000, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
			r.SubscribedTopicNames = []string{at.topic}
			all = append(all, r)
			fresh := *r
			if fresh.MemberID = "attacker"; version >= 1 {
				fresh.SubscribedTopicNames, fresh.SubscribedTopicRegex = nil, str(".*")
			}
			r = &fresh
		}
		all = append(all, r)
	}
	return all
}

// subscriptionTo returns the metadata of a consumer.
func subscriptionTo(topics ...string) []byte {
	metadata := kmsg.NewConsumerMemberMetadata()
	metadata.Version, metadata.Topics = 1, topics
	return metadata.AppendTo(nil)
}

// groupAttackers are principals that may not consume the topic orders, or not in the group.
var groupAttackers = []struct {
	name, role string
	where      *access.Restriction
	condition  string
	granted    bool // the cluster's own permissions allow it to consume the topic mine
}{
	{name: "nobody"},
	{name: "producer", role: "topic-producer", where: &access.Restriction{Tenant: "public"}},
	{name: "consumer", role: "topic-consumer", where: onMine},
	{name: "owner", role: "topic-owner", where: onMine},
	{name: "elsewhere", role: "namespace-owner", where: &access.Restriction{Tenant: "sales", Namespace: "eu"}},
	{name: "conditional", role: "topic-owner", condition: "srn.tenant == 'sales'"},
	{name: "conditional-here", role: "topic-owner", condition: "srn.topic_name == 'mine'"},
	{name: "named", role: "topic-owner", where: &access.Restriction{Tenant: "public", Subscription: "another"}},
	{name: "granted", granted: true},
}

var onMine = &access.Restriction{Tenant: "public", Namespace: "default", Topic: "mine"}

// TestAttackMatrixOfGroups checks every advertised API in every version with groups of each kind: callers
// who may not consume what the group reads get no answer about it and change nothing. The matrix must have a row
// for every advertised API.
func TestAttackMatrixOfGroups(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.secrets()
	mine, orders := w.topicID("mine"), w.topicID("orders")
	victims := w.victims()
	r := w.wire(w.token)
	advertised := roundTrip[*kmsg.ApiVersionsResponse](r, kmsg.NewPtrApiVersionsRequest())
	matrix := maps.Clone(groupMatrix)
	maps.Copy(matrix, shareMatrix)
	for _, api := range advertised.ApiKeys {
		if _, ok := matrix[api.ApiKey]; !ok {
			t.Errorf("API %d is advertised, but has no row in the matrix of principals, APIs and groups", api.ApiKey)
		}
	}
	before := w.groupState(victims)
	attempts, successes := 0, 0
	for _, a := range groupAttackers {
		attacker := w.wire(w.attacker(a.name, a.role, a.where, a.condition, a.granted))
		for _, api := range advertised.ApiKeys {
			row := matrix[api.ApiKey]
			if row.attempts == nil {
				continue
			}
			for version := api.MinVersion; version <= api.MaxVersion; version++ {
				for _, victim := range victims {
					at := victim
					at.topic, at.topicID, at.read = "mine", mine, orders
					if !row.of.has(&at) {
						continue
					}
					got := w.try(attacker, &row, version, &at)
					attempts += len(got)
					successes += w.judge(a.name, api.ApiKey, version, at.name, &row, got)
					if !row.sameWhenMissing {
						continue
					}
					missing := at
					missing.name += "-missing"
					if absent := w.try(attacker, &row, version, &missing); !slices.Equal(absent, got) {
						successes++
						t.Errorf("%s with API %d version %d: got %v for group %s and %v for a missing one", a.name,
							api.ApiKey, version, got, at.name, absent)
					}
				}
			}
			if after := w.groupState(victims); after != before {
				successes++
				t.Errorf("%s changed groups with API %d: got %s, want %s", a.name, api.ApiKey, after, before)
				before = after
			}
		}
	}
	tally.Attack(t, "consumer groups of others over the Kafka protocol", attempts, successes)
}

// result is the answer to one attempt.
type result struct {
	code  int16
	shown bool
}

// try sends the requests of a row.
func (w *harness) try(r *rawClient, row *groupRow, version int16, at *groupTarget) (all []result) {
	w.Helper()
	for _, request := range row.attempts(version, at) {
		request.SetVersion(version)
		code, shown := row.code(roundTrip[kmsg.Response](r, request), at.name)
		all = append(all, result{code, shown})
	}
	return all
}

// judge reports the attempts that succeeded.
func (w *harness) judge(name string, key, version int16, group string, row *groupRow, got []result) (successes int) {
	w.Helper()
	for i, result := range got {
		if result.shown || !slices.Contains(row.allowed, result.code) {
			successes++
			w.Errorf("%s with API %d version %d, attempt %d on group %s: got code %d, shown %t; want one of %v",
				name, key, version, i, group, result.code, result.shown, row.allowed)
		}
	}
	return successes
}

// attacker creates an account with at most one role.
func (w *harness) attacker(name, role string, where *access.Restriction, condition string, granted bool) string {
	w.Helper()
	token := w.account(name)
	if role != "" {
		w.ok(w.policy.SetBinding(access.Binding{
			Organization: organization, Name: name, RoleKind: "ClusterRole", Role: role,
			Subjects:    []access.Subject{{Kind: access.SubjectServiceAccount, Name: name}},
			Restriction: where, CEL: condition,
		}))
	}
	if granted {
		w.grantConsume(name, "mine")
	}
	return token
}

// victims creates groups of each kind, with members of an administrator that read the topic orders.
func (w *harness) victims() []groupTarget {
	w.Helper()
	r := w.wire(w.token)
	classic, static, mixed := r.reader("classic", nil), r.reader("static", str("one")), r.reader("mixed", nil)
	consumer := r.consumerReader("consumer")
	r.consumerReader("mixed")
	return []groupTarget{
		{name: "classic", member: classic.MemberID, generation: classic.Generation},
		{name: "static", member: static.MemberID, generation: static.Generation, instance: "one"},
		{name: "mixed", member: mixed.MemberID, generation: mixed.Generation},
		{name: "consumer", member: consumer, generation: 1},
		{name: "team", member: "none", generation: 1}, // has commits, but no members
		{name: "workers", member: r.shareReader("workers"), generation: 1, share: true},
	}
}

// reader makes a classic consumer of the topic orders join a group alone, and assigns it nothing.
func (r *rawClient) reader(group string, instance *string) *kmsg.JoinGroupResponse {
	r.Helper()
	join := kmsg.NewPtrJoinGroupRequest()
	join.Version, join.Group, join.InstanceID, join.ProtocolType = 9, group, instance, "consumer"
	join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = 300_000, 300_000
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: subscriptionTo("orders")}}
	joined := roundTrip[*kmsg.JoinGroupResponse](r, join)
	if joined.ErrorCode == 79 {
		join.MemberID = joined.MemberID
		joined = roundTrip[*kmsg.JoinGroupResponse](r, join)
	}
	none := kmsg.NewConsumerMemberAssignment()
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Version, sync.Group, sync.MemberID, sync.Generation = 5, group, joined.MemberID, joined.Generation
	sync.ProtocolType, sync.Protocol = str("consumer"), str("range")
	sync.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{
		{MemberID: joined.MemberID, MemberAssignment: none.AppendTo(nil)},
	}
	if got := roundTrip[*kmsg.SyncGroupResponse](r, sync); joined.ErrorCode != 0 || got.ErrorCode != 0 {
		r.Fatalf("joining %s: got codes %d and %d, want success", group, joined.ErrorCode, got.ErrorCode)
	}
	return joined
}

// consumerReader makes a consumer of the topic orders with the consumer protocol join a group.
func (r *rawClient) consumerReader(group string) (member string) {
	r.Helper()
	join := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	join.Version, join.Group, join.MemberID, join.RebalanceTimeoutMillis = 1, group, group+"-reader", 300_000
	join.SubscribedTopicNames, join.Topics = []string{"orders"}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	if got := roundTrip[*kmsg.ConsumerGroupHeartbeatResponse](r, join); got.ErrorCode != 0 {
		r.Fatalf("joining %s: got code %d, want success", group, got.ErrorCode)
	}
	return join.MemberID
}

// groupState returns everything about groups that attackers must not change.
func (w *harness) groupState(victims []groupTarget) string {
	w.Helper()
	var b strings.Builder
	for _, victim := range victims {
		key := groups.Key{Tenant: "public", Group: victim.name}
		if victim.share {
			shared, err := w.cluster.Groups.DescribeShare(key)
			w.ok(err)
			stats, err := w.broker.Statistics.Stats(w.Context(), publicTopic("orders"))
			w.ok(err)
			configs, err := w.broker.Shares.GroupConfigs(w.Context(), "public", victim.name)
			w.ok(err)
			fmt.Fprintln(&b, shared, stats.Subscriptions, configs)
			continue
		}
		d, err := w.cluster.Groups.Describe(key)
		w.ok(err)
		fmt.Fprintln(&b, key.Group, d.Type, d.State, d.Generation)
		members := make(map[string]bool)
		for i := range d.Members {
			members[d.Members[i].ID] = true
		}
		fmt.Fprintln(&b, slices.Sorted(maps.Keys(members)))
		committed, err := w.cluster.Groups.Committed(key)
		w.ok(err)
		committed.Each(func(at groups.Partition, o groups.Offset) { fmt.Fprintln(&b, at, o.Offset, o.Metadata) })
	}
	return b.String()
}

// grantConsume makes the cluster itself allow an account to consume a topic.
func (w *harness) grantConsume(account, topic string) {
	w.Helper()
	w.ok(w.broker.Catalogue.UpdateTopic(w.Context(), publicTopic(topic), func(p *messaging.Policies) error {
		p.Grant(messaging.FormatRole(account, organization), []messaging.Action{messaging.ActionConsume})
		return nil
	}))
}

// topicID returns the Kafka topic id of a topic.
func (w *harness) topicID(topic string) [16]byte {
	w.Helper()
	request := metadataOf(topic)
	request.Version = 12
	return roundTrip[*kmsg.MetadataResponse](w.wire(w.token), request).Topics[0].TopicID
}
