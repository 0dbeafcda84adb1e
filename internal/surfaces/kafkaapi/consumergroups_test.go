package kafkaapi_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"freshet/internal/identity/access"
)

// assignedPartitions records the partitions that a client was assigned, from its callbacks.
type assignedPartitions struct {
	mu      sync.Mutex
	parts   map[string]bool
	changed chan struct{} // capacity 1
}

func newAssignedPartitions() *assignedPartitions {
	return &assignedPartitions{parts: make(map[string]bool), changed: make(chan struct{}, 1)}
}

func (h *assignedPartitions) set(given map[string][]int32, has bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for topic, parts := range given {
		for _, p := range parts {
			if has {
				h.parts[fmt.Sprint(topic, "/", p)] = true
			} else {
				delete(h.parts, fmt.Sprint(topic, "/", p))
			}
		}
	}
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

func (h *assignedPartitions) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.parts))
}

// wait returns when the client has n partitions.
func (h *assignedPartitions) wait(t *testing.T, n int) {
	t.Helper()
	ctx := short(t)
	for len(h.all()) != n {
		select {
		case <-h.changed:
		case <-ctx.Done():
			t.Fatalf("has %v, want %d partitions", h.all(), n)
		}
	}
}

// consumer opens a client with the consumer protocol.
func (w *harness) consumer(group string, opts ...kgo.Opt) (*kgo.Client, *assignedPartitions) {
	w.Helper()
	h := newAssignedPartitions()
	client := w.client(append([]kgo.Opt{
		kgo.ConsumerGroup(group), kgo.ServerSideBalancer(), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxWait(200 * time.Millisecond), kgo.MetadataMinAge(10 * time.Millisecond),
		kgo.MetadataMaxAge(200 * time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client,
			given map[string][]int32,
		) {
			h.set(given, true)
		}),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client,
			given map[string][]int32,
		) {
			h.set(given, false)
		}),
	}, opts...)...)
	return client, h
}

// TestConsumerProtocol checks with franz-go that members share partitions, get those of new topics
// and of a member that leaves, and continue at the committed offsets.
func TestConsumerProtocol(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := short(t)
	admin := kadm.NewClient(w.client())
	if _, err := admin.CreateTopic(ctx, 4, 1, nil, "shared"); err != nil {
		t.Fatal(err)
	}
	producer := w.client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	send := func(value string) {
		var rs []*kgo.Record
		for p := range int32(4) {
			rs = append(rs, &kgo.Record{Topic: "shared", Partition: p, Value: []byte(value)})
		}
		w.ok(producer.ProduceSync(ctx, rs...).FirstErr())
	}
	send("first")
	one, first := w.consumer("team", kgo.ConsumeTopics("shared"))
	poll(t, one, 4)
	first.wait(t, 4)
	w.ok(one.CommitUncommittedOffsets(ctx))
	if group := w.describedGroup("team"); group.State != "Stable" || len(group.Members) != 1 ||
		group.Members[0].MemberEpoch != group.Epoch ||
		len(group.Members[0].Assignment.TopicPartitions) != 1 ||
		len(group.Members[0].Assignment.TopicPartitions[0].Partitions) != 4 {
		t.Errorf("group is %+v, want it stable with one member and 4 partitions in its epoch", group)
	}
	two, second := w.consumer("team", kgo.ConsumeTopics("shared"))
	first.wait(t, 2)
	second.wait(t, 2)
	for _, part := range first.all() {
		if slices.Contains(second.all(), part) {
			t.Errorf("both have %s", part)
		}
	}
	send("second")
	for _, r := range append(poll(t, one, 2), poll(t, two, 2)...) {
		if string(r.Value) != "second" {
			t.Errorf("got %q again, which was committed", r.Value)
		}
	}
	w.ok(errors.Join(one.CommitUncommittedOffsets(ctx), two.CommitUncommittedOffsets(ctx)))
	two.Close()
	first.wait(t, 4)
	send("third")
	for _, r := range poll(t, one, 4) {
		if string(r.Value) != "third" {
			t.Errorf("got %q again, which was committed", r.Value)
		}
	}
}

func (w *harness) describedGroup(group string) kmsg.ConsumerGroupDescribeResponseGroup {
	w.Helper()
	request := kmsg.NewPtrConsumerGroupDescribeRequest()
	request.Groups, request.IncludeAuthorizedOperations = []string{group}, true
	response, err := request.RequestWith(short(w.T), w.client())
	w.ok(err)
	w.ok(kerr.ErrorForCode(response.Groups[0].ErrorCode))
	const all = 1<<3 | 1<<6 | 1<<8 // read, delete, describe
	if got := response.Groups[0].AuthorizedOperations; got != all {
		w.Errorf("operations on %s: got bits %b, want %b", group, got, all)
	}
	return response.Groups[0]
}

// TestConsumerProtocolByPattern checks that topics created later are consumed too.
func TestConsumerProtocolByPattern(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := short(t)
	admin := kadm.NewClient(w.client())
	if _, err := admin.CreateTopics(ctx, 1, 1, nil, "logs-a", "other"); err != nil {
		t.Fatal(err)
	}
	client, held := w.consumer("team", kgo.ConsumeRegex(), kgo.ConsumeTopics("^logs-.*"),
		kgo.Balancers(kgo.RangeBalancer()))
	polling := make(chan struct{})
	go func() {
		defer close(polling)
		for !client.PollFetches(ctx).IsClientClosed() && ctx.Err() == nil {
		}
	}()
	held.wait(t, 1)
	if _, err := admin.CreateTopics(ctx, 2, 1, nil, "logs-b"); err != nil {
		t.Fatal(err)
	}
	held.wait(t, 3)
	if group := w.describedGroup("team"); group.AssignorName != "range" ||
		group.Members[0].SubscribedTopicRegex == nil {
		t.Errorf("group is %+v, want assignor range and a regular expression", group)
	}
	if _, err := admin.DeleteTopics(ctx, "logs-a"); err != nil {
		t.Fatal(err)
	}
	held.wait(t, 2)
	client.Close()
	<-polling
}

// TestTypesOfGroups checks the type of groups in lists and descriptions.
func TestTypesOfGroups(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := short(t)
	admin := kadm.NewClient(w.client())
	if _, err := admin.CreateTopic(ctx, 1, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	w.ok(w.client(kgo.DefaultProduceTopic("orders")).ProduceSync(ctx, &kgo.Record{Value: []byte("x")}).FirstErr())
	classic := w.client(kgo.ConsumeTopics("orders"), kgo.ConsumerGroup("classic"),
		kgo.FetchMaxWait(200*time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	poll(t, classic, 1)
	modern, _ := w.consumer("modern", kgo.ConsumeTopics("orders"))
	poll(t, modern, 1)

	list := kmsg.NewPtrListGroupsRequest()
	response, err := list.RequestWith(ctx, w.client())
	w.ok(err)
	types := make(map[string]string)
	for _, g := range response.Groups {
		types[g.Group] = g.GroupType
	}
	if want := map[string]string{"classic": "classic", "modern": "consumer"}; !maps.Equal(types, want) {
		t.Errorf("types are %v, want %v", types, want)
	}
	list.TypesFilter = []string{"Consumer"}
	if response, err = list.RequestWith(ctx, w.client()); err != nil || len(response.Groups) != 1 ||
		response.Groups[0].Group != "modern" {
		t.Errorf("filtered list is %+v (error %v), want only modern", response, err)
	}
	describe := kmsg.NewPtrDescribeGroupsRequest()
	describe.Groups = []string{"modern"}
	d, err := describe.RequestWith(ctx, w.client())
	w.ok(err)
	if got := d.Groups[0]; !errors.Is(kerr.ErrorForCode(got.ErrorCode), kerr.GroupIDNotFound) || got.State != "Dead" {
		t.Errorf("described as a classic group: got %+v, want %v", got, kerr.GroupIDNotFound)
	}
	for _, c := range []struct {
		group string
		want  error
	}{{"classic", kerr.GroupIDNotFound}, {"none", kerr.GroupIDNotFound}} {
		if err := w.heartbeat(w.client(),
			func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.Group, r.MemberEpoch = c.group, 7 }); !errors.Is(err,
			c.want) {
			t.Errorf("heartbeat to %s: got %v, want %v", c.group, err, c.want)
		}
	}
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.ProtocolType, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = "modern", "consumer",
		10_000, 10_000
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range"}}
	if joined, err := join.RequestWith(ctx, w.client()); err != nil ||
		!errors.Is(kerr.ErrorForCode(joined.ErrorCode), kerr.InconsistentGroupProtocol) {
		t.Errorf("classic member in a consumer-protocol group: got %+v, %v; want %v", joined, err,
			kerr.InconsistentGroupProtocol)
	}
}

// heartbeat sends a heartbeat that joins, unless change modifies it.
func (w *harness) heartbeat(client *kgo.Client, change func(*kmsg.ConsumerGroupHeartbeatRequest)) error {
	w.Helper()
	request := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	request.Group, request.MemberID, request.RebalanceTimeoutMillis = "g", "m", 60_000
	request.SubscribedTopicNames, request.Topics = []string{"orders"}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	change(request)
	response, err := request.RequestWith(short(w.T), client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(response.ErrorCode)
}

// TestConsumerHeartbeatErrors checks the error code of each rejection, and that a caller without
// permission learns nothing about a topic.
func TestConsumerHeartbeatErrors(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := short(t)
	admin := kadm.NewClient(w.client())
	if _, err := admin.CreateTopic(ctx, 1, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	client := w.client()
	type request = kmsg.ConsumerGroupHeartbeatRequest
	for _, c := range []struct {
		name   string
		change func(*request)
		want   error
	}{
		{"joins", func(*request) {}, nil},
		{"empty group id", func(r *request) { r.Group = "" }, kerr.InvalidRequest},
		{"no member id", func(r *request) { r.MemberID = "" }, kerr.InvalidRequest},
		{"empty instance id", func(r *request) { r.InstanceID = kmsg.StringPtr("") }, kerr.InvalidRequest},
		{"unknown member", func(r *request) { r.MemberID, r.MemberEpoch = "x", 1 }, kerr.UnknownMemberID},
		{"epoch ahead", func(r *request) { r.MemberEpoch = 9 }, kerr.FencedMemberEpoch},
		{"assignor", func(r *request) { r.ServerAssignor = kmsg.StringPtr("best") }, kerr.UnsupportedAssignor},
		{
			"expression", func(r *request) { r.SubscribedTopicRegex = kmsg.StringPtr("(") },
			kerr.InvalidRegularExpression,
		},
		{"static joins", func(r *request) { r.MemberID, r.InstanceID = "s1", kmsg.StringPtr("i") }, nil},
		{
			"static joins twice", func(r *request) { r.MemberID, r.InstanceID = "s2", kmsg.StringPtr("i") },
			kerr.UnreleasedInstanceID,
		},
		{
			"static leaves as another",
			func(r *request) {
				r.MemberID, r.InstanceID, r.MemberEpoch = "s2",
					kmsg.StringPtr("i"), -2
			}, kerr.FencedInstanceID,
		},
		{"leaves", func(r *request) { r.MemberEpoch = -1 }, nil},
		{"leaves twice", func(r *request) { r.MemberEpoch = -1 }, kerr.UnknownMemberID},
	} {
		if err := w.heartbeat(client, c.change); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}

	reader := w.clientAs(as(w.account("reader")))
	if err := w.heartbeat(reader, func(*request) {}); !errors.Is(err, kerr.GroupAuthorizationFailed) {
		t.Errorf("without a role: got %v, want %v", err, kerr.GroupAuthorizationFailed)
	}
	w.bindTopic("reader", "topic-consumer", "mine")
	if err := w.heartbeat(reader, func(*request) {}); !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Errorf("with a role for another topic: got %v, want %v", err, kerr.TopicAuthorizationFailed)
	}
	if _, err := admin.CreateTopic(ctx, 1, 1, nil, "mine"); err != nil {
		t.Fatal(err)
	}
	everything := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	everything.Group, everything.MemberID, everything.RebalanceTimeoutMillis = "by-pattern", "m", 60_000
	everything.SubscribedTopicRegex, everything.Topics = kmsg.StringPtr(".*"),
		[]kmsg.ConsumerGroupHeartbeatRequestTopic{}
	response, err := everything.RequestWith(ctx, reader)
	w.ok(err)
	if response.ErrorCode != 0 || response.Assignment == nil || len(response.Assignment.Topics) != 1 ||
		response.Assignment.Topics[0].TopicID[15] != byte(topicNumber(t, w, "mine")) ||
		response.HeartbeatIntervalMillis != 50 {
		t.Errorf("with a pattern: got %+v, want the one topic that the caller may describe", response)
	}
}

// bindTopic grants an account a role on one topic of the public namespace.
func (w *harness) bindTopic(account, role, topic string) {
	w.Helper()
	w.ok(w.policy.SetBinding(access.Binding{
		Organization: organization, Name: account + "-" + topic, RoleKind: "ClusterRole", Role: role,
		Subjects:    []access.Subject{{Kind: access.SubjectServiceAccount, Name: account}},
		Restriction: &access.Restriction{Tenant: "public", Namespace: "default", Topic: topic},
	}))
}

// pinned limits a client to one version of an API.
func pinned(key, version int16) *kversion.Versions {
	versions := kversion.Stable()
	versions.SetMaxKeyVersion(key, version)
	return versions
}

// TestOffsetsOfMembers checks commits and fetches with member epochs.
func TestOffsetsOfMembers(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := short(t)
	admin := kadm.NewClient(w.client())
	if _, err := admin.CreateTopic(ctx, 1, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	client := w.client()
	w.ok(w.heartbeat(client, func(*kmsg.ConsumerGroupHeartbeatRequest) {}))
	id := w.describedGroup("g").Members[0].Assignment.TopicPartitions[0].TopicID
	commit := func(version int16, epoch int32, topic [16]byte) error {
		r := kmsg.NewPtrOffsetCommitRequest()
		r.Group, r.MemberID, r.Generation = "g", "m", epoch
		t := kmsg.NewOffsetCommitRequestTopic()
		t.Topic, t.TopicID = "orders", topic
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Offset = 5
		t.Partitions = append(t.Partitions, p)
		r.Topics = append(r.Topics, t)
		versioned := w.client(kgo.MaxVersions(pinned(8, version)))
		response, err := r.RequestWith(ctx, versioned)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(response.Topics[0].Partitions[0].ErrorCode)
	}
	for _, c := range []struct {
		name    string
		version int16
		epoch   int32
		id      [16]byte
		want    error
	}{
		{"by id", 10, 1, id, nil},
		{"by name", 9, 1, id, nil},
		{"old version", 8, 1, id, kerr.UnsupportedVersion},
		{"stale", 10, 7, id, kerr.StaleMemberEpoch},
		{"unknown id", 10, 1, [16]byte{1}, kerr.UnknownTopicID},
	} {
		if err := commit(c.version, c.epoch, c.id); !errors.Is(err, c.want) {
			t.Errorf("commit %s: got %v, want %v", c.name, err, c.want)
		}
	}
	fetch := func(member string, epoch int32) (int64, error) {
		r := kmsg.NewPtrOffsetFetchRequest()
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group, g.MemberID, g.MemberEpoch = "g", &member, epoch
		t := kmsg.NewOffsetFetchRequestGroupTopic()
		t.Topic, t.TopicID, t.Partitions = "orders", id, []int32{0}
		g.Topics = append(g.Topics, t)
		r.Groups = append(r.Groups, g)
		response, err := r.RequestWith(ctx, client)
		if err != nil {
			return 0, err
		}
		row := response.Groups[0]
		if row.ErrorCode != 0 {
			return 0, kerr.ErrorForCode(row.ErrorCode)
		}
		return row.Topics[0].Partitions[0].Offset, kerr.ErrorForCode(row.Topics[0].Partitions[0].ErrorCode)
	}
	if got, err := fetch("m", 1); err != nil || got != 5 {
		t.Errorf("offset is %d (error %v), want 5", got, err)
	}
	if _, err := fetch("m", 2); !errors.Is(err, kerr.StaleMemberEpoch) {
		t.Errorf("fetch with another epoch: got %v, want %v", err, kerr.StaleMemberEpoch)
	}
	if _, err := fetch("x", 1); !errors.Is(err, kerr.UnknownMemberID) {
		t.Errorf("fetch of an unknown member: got %v, want %v", err, kerr.UnknownMemberID)
	}
}

func TestFeatures(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	request := kmsg.NewPtrApiVersionsRequest()
	request.ClientSoftwareName, request.ClientSoftwareVersion = "test", "1"
	response, err := request.RequestWith(short(t), w.client())
	w.ok(err)
	want := map[string]int16{"group.version": 1, "share.version": 1}
	supported, finalized := make(map[string]int16), make(map[string]int16)
	for _, f := range response.SupportedFeatures {
		supported[f.Name] = f.MaxVersion
	}
	for _, f := range response.FinalizedFeatures {
		finalized[f.Name] = f.MaxVersionLevel
	}
	if !maps.Equal(supported, want) || !maps.Equal(finalized, want) {
		t.Errorf("supported features are %v, finalized ones %v, want %v", supported, finalized, want)
	}
}
