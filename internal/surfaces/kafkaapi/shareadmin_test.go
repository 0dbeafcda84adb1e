package kafkaapi_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
)

// listed returns the groups of a type with their states.
func (w *harness) listed(r *rawClient, kind string) (all []string) {
	w.Helper()
	request := kmsg.NewPtrListGroupsRequest()
	request.Version, request.TypesFilter = 5, []string{kind}
	for _, g := range roundTrip[*kmsg.ListGroupsResponse](r, request).Groups {
		all = append(all, g.Group+" "+g.GroupState+" "+g.GroupType)
	}
	return all
}

func (w *harness) wantList(r *rawClient, kind string, want ...string) {
	w.Helper()
	if got := w.listed(r, kind); !slices.Equal(got, want) {
		w.Errorf("groups of type %s are %v, want %v", kind, got, want)
	}
}

func (w *harness) describedShare(r *rawClient, group string) kmsg.ShareGroupDescribeResponseGroup {
	w.Helper()
	request := kmsg.NewPtrShareGroupDescribeRequest()
	request.Version, request.GroupIDs, request.IncludeAuthorizedOperations = 1, []string{group}, true
	return roundTrip[*kmsg.ShareGroupDescribeResponse](r, request).Groups[0]
}

// shareOffsets returns the start offset and the lag of each partition of a group.
func (w *harness) shareOffsets(r *rawClient, group string, topics ...string) (all []string, code int16) {
	w.Helper()
	request := kmsg.NewPtrDescribeShareGroupOffsetsRequest()
	request.Version = 1
	wanted := kmsg.NewDescribeShareGroupOffsetsRequestGroup()
	wanted.GroupID = group
	for _, topic := range topics {
		wanted.Topics = append(wanted.Topics,
			kmsg.DescribeShareGroupOffsetsRequestGroupTopic{Topic: topic, Partitions: []int32{0}})
	}
	request.Groups = append(request.Groups, wanted)
	g := roundTrip[*kmsg.DescribeShareGroupOffsetsResponse](r, request).Groups[0]
	for _, topic := range g.Topics {
		for _, p := range topic.Partitions {
			all = append(all, fmt.Sprintf("%s/%d: %d+%d, code %d", topic.Topic, p.Partition, p.StartOffset, p.Lag,
				p.ErrorCode))
		}
	}
	return all, g.ErrorCode
}

// TestShareAdministration checks that lists, descriptions, resets and deletions of share groups are those of the
// subscriptions, also of those that were created over HTTP.
func TestShareAdministration(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := short(t)
	w.shareTopic("workers", "jobs", 1)
	w.sendNumbers("jobs", 10)
	r := w.wire(w.token)
	s := w.rawShare("workers", "one", "jobs")
	w.ok(w.broker.Consumer.Subscribe(ctx, topicNamed("jobs"), "http", messaging.Position{Kind: messaging.Latest}, nil))
	w.wantList(r, "share", "http Empty share", "workers Stable share")
	w.wantList(r, "consumer")

	if g := w.describedShare(r, "workers"); g.ErrorCode != 0 || g.GroupState != "Stable" || g.Assignor != "simple" ||
		len(g.Members) != 1 || g.Members[0].MemberID != "one" || g.Members[0].MemberEpoch != g.GroupEpoch ||
		!slices.Equal(g.Members[0].SubscribedTopicNames, []string{"jobs"}) ||
		g.Members[0].Assignment.TopicPartitions[0].Topic != "jobs" || g.AuthorizedOperations == 0 {
		t.Errorf("group is %+v, want it stable with one member", g)
	}
	if g := w.describedShare(r, "http"); g.ErrorCode != 0 || g.GroupState != "Empty" {
		t.Errorf("subscription of HTTP consumers is %+v, want an empty group", g)
	}
	if g := w.describedShare(r, "none"); g.ErrorCode != 69 {
		t.Errorf("missing group: code %d, want 69", g.ErrorCode)
	}

	s.fetch(4)
	if code := s.acknowledge(acks(0, 1, ackAccept), acks(3, 3, ackAccept)); code != 0 {
		t.Fatalf("accepting: code %d", code)
	}
	for topics, want := range map[string][]string{
		"": {"jobs/0: 2+7, code 0"}, "jobs": {"jobs/0: 2+7, code 0"}, "none": {"none/0: 0+-1, code 3"},
	} {
		var named []string
		if topics != "" {
			named = []string{topics}
		}
		if got, code := w.shareOffsets(r, "workers", named...); code != 0 || !slices.Equal(got, want) {
			t.Errorf("offsets of topics %q: %v, code %d; want %v", topics, got, code, want)
		}
	}

	const notEmpty = 68
	alter := func(group string, offset int64) (code int16) {
		t.Helper()
		request := kmsg.NewPtrAlterShareGroupOffsetsRequest()
		request.GroupID = group
		request.Topics = []kmsg.AlterShareGroupOffsetsRequestTopic{{
			Topic: "jobs", Partitions: []kmsg.AlterShareGroupOffsetsRequestTopicPartition{{StartOffset: offset}},
		}}
		return roundTrip[*kmsg.AlterShareGroupOffsetsResponse](r, request).Topics[0].Partitions[0].ErrorCode
	}
	drop := func(group string) int16 {
		t.Helper()
		request := kmsg.NewPtrDeleteShareGroupOffsetsRequest()
		request.GroupID, request.Topics = group, []kmsg.DeleteShareGroupOffsetsRequestTopic{{Topic: "jobs"}}
		return roundTrip[*kmsg.DeleteShareGroupOffsetsResponse](r, request).Topics[0].ErrorCode
	}
	remove := func(group string) int16 {
		t.Helper()
		request := kmsg.NewPtrDeleteGroupsRequest()
		request.Version, request.Groups = 2, []string{group}
		return roundTrip[*kmsg.DeleteGroupsResponse](r, request).Groups[0].ErrorCode
	}
	for what, code := range map[string]int16{
		"moving": alter("workers", 0), "deleting offsets": drop("workers"), "deleting": remove("workers"),
	} {
		if code != notEmpty {
			t.Errorf("%s a group with members: code %d, want %d", what, code, notEmpty)
		}
	}
	leave := kmsg.NewPtrShareGroupHeartbeatRequest()
	leave.Version, leave.GroupID, leave.MemberID, leave.MemberEpoch = 1, "workers", "one", -1
	roundTrip[*kmsg.ShareGroupHeartbeatResponse](r, leave)
	w.wantList(r, "share", "http Empty share", "workers Empty share")
	if code := alter("workers", -1); code != 42 {
		t.Errorf("moving to a negative offset: code %d, want 42", code)
	}
	if code := alter("workers", 8); code != 0 {
		t.Errorf("moving: code %d", code)
	}
	if got, _ := w.shareOffsets(r, "workers"); !slices.Equal(got, []string{"jobs/0: 8+2, code 0"}) {
		t.Errorf("after moving to 8: %v", got)
	}
	if code := alter("none", 0); code != 69 {
		t.Errorf("moving a group without the subscription: code %d, want 69", code)
	}
	if codes := [3]int16{drop("workers"), drop("workers"), remove("http")}; codes != [3]int16{0, 69, 0} {
		t.Errorf("deleting: codes %v, want success, 69, success", codes)
	}
	w.wantList(r, "share")
	subscriptions, err := w.broker.Consumer.Subscriptions(ctx, topicNamed("jobs"))
	w.ok(err)
	if len(subscriptions) != 0 {
		t.Errorf("subscriptions %v are left", subscriptions)
	}
}

// TestDeleteGroupsPrefersConsumerGroups checks that deleting a consumer group does not delete the subscription of the
// same name.
func TestDeleteGroupsPrefersConsumerGroups(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.secrets()
	w.ok(w.broker.Consumer.Subscribe(t.Context(), publicTopic("orders"), "team",
		messaging.Position{Kind: messaging.Earliest}, nil))
	r := w.wire(w.token)
	request := kmsg.NewPtrDeleteGroupsRequest()
	request.Version, request.Groups = 2, []string{"team"}
	if code := roundTrip[*kmsg.DeleteGroupsResponse](r, request).Groups[0].ErrorCode; code != 0 {
		t.Errorf("deleting: code %d", code)
	}
	w.wantList(r, "share", "team Empty share")
}

// TestShareConfigs checks which configurations of groups are accepted, and that they are shown.
func TestShareConfigs(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	r := w.wire(w.token)
	alter := func(group, name string, value *string) int16 {
		t.Helper()
		request := kmsg.NewPtrIncrementalAlterConfigsRequest()
		request.Version = 1
		resource := kmsg.NewIncrementalAlterConfigsRequestResource()
		resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeGroupConfig, group
		config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		config.Name, config.Value = name, value
		if value == nil {
			config.Op = kmsg.IncrementalAlterConfigOpDelete
		}
		resource.Configs = append(resource.Configs, config)
		request.Resources = append(request.Resources, resource)
		return roundTrip[*kmsg.IncrementalAlterConfigsResponse](r, request).Resources[0].ErrorCode
	}
	const invalid = 40
	for _, test := range []struct {
		name, value string
		want        int16
	}{
		{"share.auto.offset.reset", "earliest", 0},
		{"share.auto.offset.reset", "by_duration:P1DT2H3M4.5S", 0},
		{"share.auto.offset.reset", "by_duration:P", invalid},
		{"share.auto.offset.reset", "by_duration:PT", invalid},
		{"share.auto.offset.reset", "by_duration:P999999DT9999999H", invalid},
		{"share.auto.offset.reset", "by_duration:-PT1S", invalid},
		{"share.auto.offset.reset", "none", invalid},
		{"share.record.lock.duration.ms", "1000", 0},
		{"share.record.lock.duration.ms", "999", invalid},
		{"share.record.lock.duration.ms", "3600001", invalid},
		{"share.delivery.count.limit", "2", 0},
		{"share.delivery.count.limit", "1", invalid},
		{"share.delivery.count.limit", "101", invalid},
		{"share.isolation.level", "read_committed", 0},
		{"share.isolation.level", "dirty", invalid},
		{"share.session.timeout.ms", "1000", invalid},
		{"none", "1", invalid},
	} {
		if got := alter("workers", test.name, &test.value); got != test.want {
			t.Errorf("%s=%s: code %d, want %d", test.name, test.value, got, test.want)
		}
	}
	if got := alter("a/b", "share.isolation.level", str("read_committed")); got == 0 {
		t.Error("a group that cannot be a subscription got a configuration")
	}
	if got := alter("workers", "share.isolation.level", nil); got != 0 {
		t.Errorf("resetting: code %d", got)
	}
	describe := kmsg.NewPtrDescribeConfigsRequest()
	describe.Version = 4
	wanted := kmsg.NewDescribeConfigsRequestResource()
	wanted.ResourceType, wanted.ResourceName = kmsg.ConfigResourceTypeGroupConfig, "workers"
	describe.Resources = append(describe.Resources, wanted)
	var got []string
	for _, c := range roundTrip[*kmsg.DescribeConfigsResponse](r, describe).Resources[0].Configs {
		if c.Source == kmsg.ConfigSourceGroupConfig {
			got = append(got, c.Name+"="+deref(c.Value))
		}
	}
	want := []string{
		"share.auto.offset.reset=by_duration:P1DT2H3M4.5S", "share.delivery.count.limit=2",
		"share.record.lock.duration.ms=1000",
	}
	if !slices.Equal(got, want) {
		t.Errorf("configurations are %v, want %v", got, want)
	}
	list := kmsg.NewPtrListConfigResourcesRequest()
	list.Version, list.ResourceTypes = 1, []int8{int8(kmsg.ConfigResourceTypeGroupConfig)}
	if all := roundTrip[*kmsg.ListConfigResourcesResponse](r, list).ConfigResources; len(all) != 1 ||
		all[0].Name != "workers" {
		t.Errorf("groups with configurations are %+v, want workers", all)
	}
}

// TestShareDeliveryLimitNeedsPermission checks that an account that may consume cannot make the broker produce dead
// letters, which it could not produce itself.
func TestShareDeliveryLimitNeedsPermission(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.secrets()
	r := w.wire(w.attacker("drinker", "topic-consumer", &access.Restriction{Tenant: "public"}, "", false))
	for name, want := range map[string]int16{
		"share.delivery.count.limit": codeGroupDenied, "share.record.lock.duration.ms": 0,
	} {
		request := kmsg.NewPtrIncrementalAlterConfigsRequest()
		request.Version = 1
		resource := kmsg.NewIncrementalAlterConfigsRequestResource()
		resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeGroupConfig, "workers"
		config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		config.Name, config.Value = name, str("2000")
		if want != 0 {
			config.Value = str("5")
		}
		resource.Configs = append(resource.Configs, config)
		request.Resources = append(request.Resources, resource)
		if got := roundTrip[*kmsg.IncrementalAlterConfigsResponse](r, request).Resources[0].ErrorCode; got != want {
			t.Errorf("setting %s: code %d, want %d", name, got, want)
		}
	}
}
