package kafkaapi_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
	"freshet/internal/broker/messaging/messagingtest"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble/pebbletest"
	"freshet/internal/surfaces/kafkaapi"
	"freshet/internal/surfaces/pipeline"
)

// createTopic creates a topic, and its tenant and namespace where they are missing.
func (w *harness) createTopic(tenant, namespace, local string, partitions int32) names.Topic {
	w.Helper()
	ctx, broker := short(w.T), w.broker
	topic, err := names.NewTopic(tenant, namespace, local)
	w.ok(err)
	err = broker.Catalogue.CreateTenant(ctx, messaging.Tenant{Name: tenant})
	if err != nil && !errors.Is(err, messaging.ErrTenantExists) {
		w.Fatal(err)
	}
	err = broker.Catalogue.CreateNamespace(ctx, topic.Namespace, messaging.Policies{})
	if err != nil && !errors.Is(err, messaging.ErrNamespaceExists) {
		w.Fatal(err)
	}
	w.ok(broker.Catalogue.CreateTopic(ctx, topic, messaging.NewTopic{Partitions: partitions}))
	return topic
}

// metadata requests one topic.
func (r *rawClient) metadata(version int16, name *string, id [16]byte) kmsg.MetadataResponseTopic {
	r.Helper()
	request := kmsg.NewPtrMetadataRequest()
	request.Version = version
	row := kmsg.NewMetadataRequestTopic()
	row.Topic, row.TopicID = name, id
	request.Topics = append(request.Topics, row)
	return roundTrip[*kmsg.MetadataResponse](r, request).Topics[0]
}

// idOf returns the id of a topic by its full name.
func (r *rawClient) idOf(topic names.Topic) [16]byte {
	r.Helper()
	row := r.metadata(12, kmsg.StringPtr(topic.String()), [16]byte{})
	if row.ErrorCode != 0 || row.TopicID == [16]byte{} {
		r.Fatalf("%s: got code %d and id %x, want an id", topic, row.ErrorCode, row.TopicID)
	}
	return row.TopicID
}

// TestDisplayNamesResolve checks that every topic name in a response resolves to that topic, even if two
// topics have the same dotted name, as in the data of earlier versions.
func TestDisplayNamesResolve(t *testing.T) {
	t.Parallel()
	eng, err := pebbletest.OpenMemoryWith(messaging.Splitter{})
	if err != nil {
		t.Fatal(err)
	}
	w := newHarnessOn(t, eng, func(o *kafkaapi.Options) { o.ListAll = true })
	r := w.wire(w.token)
	shadowed := w.createTopic("public", "default", "sales.eu.orders", 1)
	w.ok(messagingtest.ShadowTopics(t.Context(), eng, "sales/eu"))
	w.ok(w.broker.Catalogue.CreateTenant(t.Context(), messaging.Tenant{Name: "sales"}))
	topics := []names.Topic{
		shadowed, w.createTopic("sales", "eu", "orders", 2),
		w.createTopic("a.b", "c", "d", 3), w.createTopic("a", "b", "c.d", 4),
		w.createTopic("public", "default", "with space", 5), w.createTopic("sales", "eu", "plain", 6),
	}
	ids := make(map[[16]byte]int)
	commit := kmsg.NewPtrOffsetCommitRequest()
	commit.Version, commit.Group, commit.Generation = 8, "team", -1
	for i, topic := range topics {
		id := r.idOf(topic)
		ids[id] = i
		row := r.metadata(12, nil, id)
		if row.ErrorCode != 0 || row.Topic == nil || len(row.Partitions) != i+1 {
			t.Fatalf("%s by its id: got %+v, want %d partitions", topic, row, i+1)
		}
		if back := r.metadata(12, row.Topic, [16]byte{}); back.TopicID != id {
			t.Errorf("%s is named %s, which resolves to another topic with %d partitions",
				topic, *row.Topic, len(back.Partitions))
		}
		part := kmsg.NewOffsetCommitRequestTopicPartition()
		part.Offset = int64(i)
		commit.Topics = append(commit.Topics, kmsg.OffsetCommitRequestTopic{
			Topic: topic.String(), Partitions: []kmsg.OffsetCommitRequestTopicPartition{part},
		})
	}
	if row := r.metadata(12, nil, r.idOf(topics[5])); *row.Topic != "sales.eu.plain" {
		t.Errorf("got %s, want the dotted name where it is unambiguous", *row.Topic)
	}
	for _, row := range roundTrip[*kmsg.OffsetCommitResponse](r, commit).Topics {
		if row.Partitions[0].ErrorCode != 0 {
			t.Fatalf("committing for %s: got code %d, want 0", row.Topic, row.Partitions[0].ErrorCode)
		}
	}

	fetch := kmsg.NewPtrOffsetFetchRequest()
	fetch.Version, fetch.Group, fetch.Topics = 7, "team", nil
	offsets := roundTrip[*kmsg.OffsetFetchResponse](r, fetch).Topics
	if len(offsets) != len(topics) {
		t.Errorf("offsets of the group: got %d topics, want %d", len(offsets), len(topics))
	}
	for _, row := range offsets {
		if meant := ids[r.metadata(12, &row.Topic, [16]byte{}).TopicID]; row.Partitions[0].Offset != int64(meant) {
			t.Errorf("got offset %d under the name %s, which resolves to %s with offset %d",
				row.Partitions[0].Offset, row.Topic, topics[meant], meant)
		}
	}

	list := kmsg.NewPtrMetadataRequest()
	list.Version, list.Topics = 12, nil
	var listed []string
	for _, row := range roundTrip[*kmsg.MetadataResponse](r, list).Topics {
		listed = append(listed, *row.Topic)
		if back := r.metadata(12, row.Topic, [16]byte{}); back.TopicID != row.TopicID {
			t.Errorf("%s of the list resolves to another topic", *row.Topic)
		}
	}
	slices.Sort(listed)
	if want := []string{"a.b.c.d", "sales.eu.orders", "sales.eu.plain"}; !slices.Equal(listed, want) {
		t.Errorf("list of all topics: got %q, want %q", listed, want)
	}
}

// TestNameAndIDOfTwoTopics checks that no response mixes the name of one topic with the id of
// another.
func TestNameAndIDOfTwoTopics(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	r := w.wire(w.token)
	w.createTopic("public", "default", "a", 1)
	id := r.idOf(w.createTopic("public", "default", "b", 2))
	row := r.metadata(12, kmsg.StringPtr("a"), id)
	if row.ErrorCode != 0 || *row.Topic != "b" || len(row.Partitions) != 2 {
		t.Errorf("Metadata: got %+v, want topic b, as the id decides", row)
	}
	row = r.metadata(11, kmsg.StringPtr("a"), id)
	if row.ErrorCode != kerr.InvalidRequest.Code || len(row.Partitions) != 0 {
		t.Errorf("Metadata, version 11: got %+v, want code %d", row, kerr.InvalidRequest.Code)
	}
	unknown := id
	unknown[15] ^= 0xff
	row = r.metadata(12, kmsg.StringPtr("a"), unknown)
	if row.ErrorCode != kerr.UnknownTopicID.Code || row.Topic != nil {
		t.Errorf("Metadata, unknown id: got %+v, want code %d and no name", row, kerr.UnknownTopicID.Code)
	}
	request := kmsg.NewPtrDeleteTopicsRequest()
	request.Version = 6
	request.Topics = []kmsg.DeleteTopicsRequestTopic{{Topic: kmsg.StringPtr("a"), TopicID: id}}
	got := roundTrip[*kmsg.DeleteTopicsResponse](r, request).Topics[0]
	if got.ErrorCode != kerr.InvalidRequest.Code || *got.Topic != "a" || got.TopicID != id {
		t.Errorf("DeleteTopics: got %+v, want code %d", got, kerr.InvalidRequest.Code)
	}
	for _, name := range []string{"a", "b"} {
		if row := r.metadata(12, &name, [16]byte{}); row.ErrorCode != 0 {
			t.Errorf("topic %s: got code %d, want that it still exists", name, row.ErrorCode)
		}
	}
	request.Topics[0].Topic = nil
	got = roundTrip[*kmsg.DeleteTopicsResponse](r, request).Topics[0]
	if got.ErrorCode != 0 || *got.Topic != "b" || got.TopicID != id {
		t.Errorf("DeleteTopics by id: got %+v, want topic b", got)
	}
}

// duringAuthorize runs a function during the authorization of a call.
type duringAuthorize struct {
	pipeline.Authorizer
	permission string
	do         atomic.Pointer[func()]
}

// Authorize implements pipeline.Authorizer.
func (m *duringAuthorize) Authorize(
	ctx context.Context, principal *identity.Principal, permission access.Permission, scope access.Scope,
) (access.Decision, error) {
	if string(permission) == m.permission {
		if do := m.do.Swap(nil); do != nil {
			(*do)()
		}
	}
	return m.Authorizer.Authorize(ctx, principal, permission, scope)
}

// TestDeleteTopicsMeansOneIncarnation checks that deleting a topic by id does not delete a topic of
// the same name that was created during the request.
func TestDeleteTopicsMeansOneIncarnation(t *testing.T) {
	t.Parallel()
	var m *duringAuthorize
	w := newHarness(t, func(o *kafkaapi.Options) {
		m = &duringAuthorize{Authorizer: o.Authorizer, permission: "messaging.topics.delete"}
		o.Authorizer = m
	})
	r := w.wire(w.token)
	topic := w.createTopic("public", "default", "orders", 1)
	request := kmsg.NewPtrDeleteTopicsRequest()
	request.Version = 6
	request.Topics = []kmsg.DeleteTopicsRequestTopic{{TopicID: r.idOf(topic)}}
	again := func() {
		w.ok(w.broker.Catalogue.DeleteTopic(t.Context(), topic, true))
		w.ok(w.broker.Catalogue.CreateTopic(t.Context(), topic, messaging.NewTopic{Partitions: 2}))
	}
	m.do.Store(&again)
	got := roundTrip[*kmsg.DeleteTopicsResponse](r, request).Topics[0]
	if m.do.Load() != nil {
		t.Fatal("function was not called during the request")
	}
	row := r.metadata(12, kmsg.StringPtr("orders"), [16]byte{})
	if got.ErrorCode != kerr.UnknownTopicID.Code || row.ErrorCode != 0 || len(row.Partitions) != 2 {
		t.Errorf("got code %d, and of the new topic code %d and %d partitions; want code %d and the new topic",
			got.ErrorCode, row.ErrorCode, len(row.Partitions), kerr.UnknownTopicID.Code)
	}
}

// failingJournals is an engine whose journals do not return their length, as when etcd has no leader.
type failingJournals struct {
	engine.Engine
	fail atomic.Int32 // number of calls that will fail
}

var errBehind = errors.New("journal is not available")

// Journal implements engine.Engine.
func (b *failingJournals) Journal(ctx context.Context, name string) (engine.Journal, error) {
	journal, err := b.Engine.Journal(ctx, name)
	return &failingJournal{journal, b}, err
}

type failingJournal struct {
	engine.Journal
	b *failingJournals
}

// Last implements engine.Journal.
func (j *failingJournal) Last(ctx context.Context) (uint64, error) {
	if j.b.fail.Add(-1) >= 0 {
		return 0, errBehind
	}
	return j.Journal.Last(ctx)
}

// TestNameIsNotGuessed checks that a server that cannot find out whether a namespace exists does not
// return a topic, or the absence of one, of the default namespace.
func TestNameIsNotGuessed(t *testing.T) {
	t.Parallel()
	real, err := pebbletest.OpenMemoryWith(messaging.Splitter{})
	if err != nil {
		t.Fatal(err)
	}
	eng := &failingJournals{Engine: real}
	w := newHarnessOn(t, eng)
	r := w.wire(w.token)
	eng.fail.Store(1)
	row := r.metadata(12, kmsg.StringPtr("sales.eu.orders"), [16]byte{})
	if eng.fail.Load() > 0 {
		t.Fatal("no call failed")
	}
	if row.ErrorCode == 0 || row.ErrorCode == kerr.UnknownTopicOrPartition.Code {
		t.Errorf("got code %d and %d partitions, want another error", row.ErrorCode, len(row.Partitions))
	}
	eng.fail.Store(0)
	w.createTopic("sales", "eu", "orders", 2)
	if row := r.metadata(12, kmsg.StringPtr("sales.eu.orders"), [16]byte{}); len(row.Partitions) != 2 {
		t.Errorf("got code %d and %d partitions, want 2", row.ErrorCode, len(row.Partitions))
	}
}

// TestEpochOfNoPartition checks that a row with an error has neither an epoch nor an offset.
func TestEpochOfNoPartition(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	r := w.wire(w.token)
	w.createTopic("public", "default", "orders", 1)
	request := kmsg.NewPtrOffsetForLeaderEpochRequest()
	request.Version = 4
	part := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	part.Partition, part.LeaderEpoch = 5, 0
	request.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{
		{Topic: "orders", Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{part}},
	}
	got := roundTrip[*kmsg.OffsetForLeaderEpochResponse](r, request).Topics[0].Partitions[0]
	if got.ErrorCode != kerr.UnknownTopicOrPartition.Code || got.LeaderEpoch != -1 || got.EndOffset != -1 {
		t.Errorf("got %+v, want code %d, epoch -1 and offset -1", got, kerr.UnknownTopicOrPartition.Code)
	}
}
