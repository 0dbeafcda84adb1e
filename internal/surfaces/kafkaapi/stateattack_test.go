package kafkaapi_test

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/messaging"
	"freshet/internal/ops/quota"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble/pebbletest"
	"freshet/test/tally"
)

// stateLimits let an account have a quarter of its tenant's client state.
var stateLimits = quota.Limits{
	quota.AccountStateBytes: 256 << 10, quota.TenantStateBytes: 1 << 20, quota.ClientStateBytes: 4 << 20,
}

// limitedWorld is a world with quotas and two accounts that may produce and consume.
type limitedWorld struct {
	*harness
	quota            *quota.Cluster
	attacker, victim *rawClient
}

func newLimitedWorld(t *testing.T, eng engine.Engine, limits quota.Limits) *limitedWorld {
	t.Helper()
	cluster := quota.New(limits, nil).Organization(organization).Open("prod", quota.Limits{})
	w := &limitedWorld{harness: newLimitedHarness(t, eng, cluster), quota: cluster}
	for _, name := range []string{"mallory", "alice"} {
		token := w.account(name)
		w.bind(name, "topic-producer")
		w.bind(name, "topic-consumer")
		if client := w.wire(token); name == "mallory" {
			w.attacker = client
		} else {
			w.victim = client
		}
	}
	return w
}

func openStateEngine(t *testing.T) engine.Engine {
	t.Helper()
	eng, err := pebbletest.OpenMemoryWith(messaging.Splitter{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = eng.Close() })
	return eng
}

// commitAll commits offsets of all partitions of a topic and returns the first error code.
func commitAll(client *rawClient, group, topic string, partitions int32, metadata string) int16 {
	r := kmsg.NewPtrOffsetCommitRequest()
	r.Version, r.Group, r.Generation = 8, group, -1
	row := kmsg.NewOffsetCommitRequestTopic()
	row.Topic = topic
	for p := range partitions {
		part := kmsg.NewOffsetCommitRequestTopicPartition()
		part.Partition, part.Offset, part.Metadata = p, 1, &metadata
		row.Partitions = append(row.Partitions, part)
	}
	r.Topics = append(r.Topics, row)
	return roundTrip[*kmsg.OffsetCommitResponse](client, r).Topics[0].Partitions[0].ErrorCode
}

// TestAttackCommittedOffsets commits many offsets with large metadata in many groups. The account gets its
// share only, its existing offsets move on, and another account of the tenant is not affected. After a restart
// the same bytes are counted, and deleted groups give them back.
func TestAttackCommittedOffsets(t *testing.T) {
	t.Parallel()
	const partitions, attempts = 32, 40
	eng := openStateEngine(t)
	w := newLimitedWorld(t, eng, stateLimits)
	w.partitioned("orders", partitions)
	large, taken := strings.Repeat("m", 4096), 0
	for i := range attempts {
		switch code := commitAll(w.attacker, fmt.Sprint("g", i), "orders", partitions, large); code {
		case 0:
			taken++
		case kerr.PolicyViolation.Code:
		default:
			t.Fatalf("group %d: got code %d, want 0 or %d", i, code, kerr.PolicyViolation.Code)
		}
	}
	over := 0
	if most := w.quota.Used(quota.AccountStateBytes); most > stateLimits[quota.AccountStateBytes] || taken == attempts {
		over = taken
		t.Errorf("account has %d bytes, want at most %d", most, stateLimits[quota.AccountStateBytes])
	}
	if taken == 0 {
		t.Error("no group was committed, want those within the quota")
	}
	tally.Attack(t, "committed offsets with large metadata", attempts, over)
	if code := commitAll(w.attacker, "g0", "orders", partitions, large); code != 0 {
		t.Errorf("offsets that exist: got code %d, want 0", code)
	}
	if code := commitAll(w.victim, "mine", "orders", partitions, ""); code != 0 {
		t.Errorf("other account: got code %d, want 0", code)
	}

	before := w.quota.Used(quota.ClientStateBytes)
	w.ok(w.cluster.Groups.Close())
	again := newLimitedWorld(t, eng, stateLimits)
	if got := again.quota.Used(quota.ClientStateBytes); got != before {
		t.Errorf("after a restart %d bytes are counted, want %d", got, before)
	}
	if code := commitAll(again.attacker, "more", "orders", partitions, large); code != kerr.PolicyViolation.Code {
		t.Errorf("after a restart: got code %d, want %d", code, kerr.PolicyViolation.Code)
	}
	remove := kmsg.NewPtrDeleteGroupsRequest()
	remove.Version, remove.Groups = 2, []string{"g0", "mine"}
	for _, row := range roundTrip[*kmsg.DeleteGroupsResponse](again.wire(again.token), remove).Groups {
		if row.ErrorCode != 0 {
			t.Fatalf("deleting %s: got code %d", row.Group, row.ErrorCode)
		}
	}
	if code := commitAll(again.attacker, "more", "orders", partitions, large); code != 0 {
		t.Errorf("after a group was deleted: got code %d, want 0", code)
	}
}

// TestStateAboveTheQuotaStays checks that groups that exist above a lowered quota can go on and cannot grow.
func TestStateAboveTheQuotaStays(t *testing.T) {
	t.Parallel()
	eng := openStateEngine(t)
	w := newLimitedWorld(t, eng, stateLimits)
	w.partitioned("orders", 8)
	if code := commitAll(w.attacker, "g", "orders", 4, "metadata"); code != 0 {
		t.Fatalf("got code %d, want 0", code)
	}
	w.ok(w.cluster.Groups.Close())
	lowered := newLimitedWorld(t, eng, quota.Limits{quota.AccountStateBytes: 1, quota.TenantStateBytes: 1})
	if code := commitAll(lowered.attacker, "g", "orders", 4, "metadata"); code != 0 {
		t.Errorf("offsets that exist: got code %d, want 0", code)
	}
	if code := commitAll(lowered.attacker, "g", "orders", 5, "metadata"); code != kerr.PolicyViolation.Code {
		t.Errorf("one more partition: got code %d, want %d", code, kerr.PolicyViolation.Code)
	}
	if code := commitAll(lowered.attacker, "g", "orders", 4, "longer metadata"); code != kerr.PolicyViolation.Code {
		t.Errorf("longer metadata: got code %d, want %d", code, kerr.PolicyViolation.Code)
	}
}

// idempotentBatch returns a batch of one record of an idempotent producer.
func idempotentBatch(id int64, epoch int16, sequence int32) []byte {
	batch := oneRecord("v")
	binary.BigEndian.PutUint64(batch[43:], uint64(id))
	binary.BigEndian.PutUint16(batch[51:], uint16(epoch))
	binary.BigEndian.PutUint32(batch[53:], uint32(sequence))
	binary.BigEndian.PutUint32(batch[17:], crc32.Checksum(batch[21:], crc32.MakeTable(crc32.Castagnoli)))
	return batch
}

// send sends a batch and returns the error code and the offset.
func send(client *rawClient, topic string, partition int32, batch []byte) (code int16, offset int64) {
	r := kmsg.NewPtrProduceRequest()
	r.Version, r.Acks, r.TimeoutMillis = 11, -1, 10_000
	row := kmsg.NewProduceRequestTopic()
	row.Topic, row.Partitions = topic, []kmsg.ProduceRequestTopicPartition{{Partition: partition, Records: batch}}
	r.Topics = append(r.Topics, row)
	got := roundTrip[*kmsg.ProduceResponse](client, r).Topics[0].Partitions[0]
	return got.ErrorCode, got.BaseOffset
}

// newID returns a new producer id.
func newID(client *rawClient) int64 {
	r := kmsg.NewPtrInitProducerIDRequest()
	r.Version, r.ProducerID, r.ProducerEpoch = 4, -1, -1
	return roundTrip[*kmsg.InitProducerIDResponse](client, r).ProducerID
}

// TestAttackInventedProducerIDs sends batches with producer ids that the server has not issued. They leave no
// state behind.
func TestAttackInventedProducerIDs(t *testing.T) {
	t.Parallel()
	w := newLimitedWorld(t, openStateEngine(t), stateLimits)
	w.partitioned("orders", 2)
	issued, accepted, attempts := newID(w.attacker), 0, 0
	for _, id := range []int64{0, -2, issued + 100_000, 1 << 40, 1<<63 - 1} {
		for i := range 20 {
			attempts++
			at := id
			if id > issued {
				at = id - int64(i)
			}
			if code, _ := send(w.attacker, "orders", int32(i%2), idempotentBatch(at, 0, 0)); code == 0 {
				accepted++
			} else if id > 0 && code != kerr.InvalidProducerIDMapping.Code {
				t.Errorf("id %d: got code %d, want %d", id, code, kerr.InvalidProducerIDMapping.Code)
			}
		}
	}
	if n := w.quota.Used(quota.ClientStateBytes); n != 0 {
		t.Errorf("invented producers have %d bytes of state, want none", n)
	}
	tally.Attack(t, "producer ids that were not issued", attempts, accepted)
	if code, _ := send(w.attacker, "orders", 0, idempotentBatch(issued, 0, 0)); code != 0 {
		t.Errorf("issued id: got code %d, want 0", code)
	}
}

// TestAttackProducerState uses issued producer ids on every partition of a topic. The account gets its share of
// memory only, and another account is not affected.
func TestAttackProducerState(t *testing.T) {
	t.Parallel()
	const partitions, ids = 64, 10
	w := newLimitedWorld(t, openStateEngine(t), stateLimits)
	w.partitioned("orders", partitions)
	attempts, refused := 0, 0
	for range ids {
		id := newID(w.attacker)
		for p := range int32(partitions) {
			attempts++
			switch code, _ := send(w.attacker, "orders", p, idempotentBatch(id, 0, 0)); code {
			case 0:
			case kerr.PolicyViolation.Code:
				refused++
			default:
				t.Fatalf("got code %d, want 0 or %d", code, kerr.PolicyViolation.Code)
			}
		}
	}
	over := 0
	if most := w.quota.Used(quota.AccountStateBytes); most > stateLimits[quota.AccountStateBytes] || refused == 0 {
		over = attempts
		t.Errorf("account has %d bytes and %d batches were refused, want at most %d bytes", most, refused,
			stateLimits[quota.AccountStateBytes])
	}
	tally.Attack(t, "producers on every partition", attempts, over)
	id := newID(w.victim)
	for sequence := range int32(3) {
		if code, _ := send(w.victim, "orders", 0, idempotentBatch(id, 0, sequence)); code != 0 {
			t.Errorf("other account, sequence %d: got code %d, want 0", sequence, code)
		}
	}
	if err := w.broker.Catalogue.DeleteTopic(t.Context(), publicTopic("orders"), true); err != nil {
		t.Fatal(err)
	}
	if n := w.quota.Used(quota.ClientStateBytes); n != 0 {
		t.Errorf("the topic is deleted, but %d bytes of its producers are counted", n)
	}
}

// TestAttackProducerEpoch uses the producer id of another account, also with higher epochs. It fences nobody. The
// account itself may raise the epoch, as clients do after an error.
func TestAttackProducerEpoch(t *testing.T) {
	t.Parallel()
	w := newLimitedWorld(t, openStateEngine(t), stateLimits)
	w.partitioned("orders", 2)
	id := newID(w.victim)
	if code, _ := send(w.victim, "orders", 0, idempotentBatch(id, 0, 0)); code != 0 {
		t.Fatalf("got code %d, want 0", code)
	}
	attempts, accepted := 0, 0
	for _, c := range []struct {
		partition int32
		epoch     int16
		sequence  int32
		want      int16
	}{
		{0, 1, 0, kerr.InvalidProducerEpoch.Code},
		{0, 32767, 0, kerr.InvalidProducerEpoch.Code},
		{1, 5, 0, kerr.InvalidProducerEpoch.Code},
		{0, 0, 1, kerr.InvalidProducerIDMapping.Code},
		{1, 0, 0, kerr.InvalidProducerIDMapping.Code},
	} {
		attempts++
		code, _ := send(w.attacker, "orders", c.partition, idempotentBatch(id, c.epoch, c.sequence))
		if code == 0 {
			accepted++
		}
		if code != c.want {
			t.Errorf("epoch %d on partition %d: got code %d, want %d", c.epoch, c.partition, code, c.want)
		}
	}
	tally.Attack(t, "producer epochs of another account", attempts, accepted)
	for _, c := range []struct {
		partition int32
		epoch     int16
		sequence  int32
	}{{0, 0, 1}, {1, 0, 0}, {0, 1, 0}, {1, 3, 0}, {1, 3, 1}} {
		if code, _ := send(w.victim, "orders", c.partition, idempotentBatch(id, c.epoch, c.sequence)); code != 0 {
			t.Errorf("own epoch %d, sequence %d: got code %d, want 0", c.epoch, c.sequence, code)
		}
	}
}

// TestProducerSurvivesRestart checks that a producer goes on with its id after a restart: the next batch is
// accepted, a duplicate is recognized, and the account is still the only one that may use the id.
func TestProducerSurvivesRestart(t *testing.T) {
	t.Parallel()
	eng := openStateEngine(t)
	w := newLimitedWorld(t, eng, stateLimits)
	w.partitioned("orders", 2)
	id, unused := newID(w.victim), newID(w.victim)
	code, first := send(w.victim, "orders", 0, idempotentBatch(id, 0, 0))
	if code != 0 {
		t.Fatalf("got code %d, want 0", code)
	}
	before := w.quota.Used(quota.AccountStateBytes)
	w.ok(w.cluster.Groups.Close())
	w.ok(w.broker.Close())

	again := newLimitedWorld(t, eng, stateLimits)
	if code, offset := send(again.victim, "orders", 0, idempotentBatch(id, 0, 0)); code != 0 || offset != first {
		t.Errorf("duplicate: got code %d and offset %d, want 0 and %d", code, offset, first)
	}
	if got := again.quota.Used(quota.AccountStateBytes); got != before {
		t.Errorf("after a restart %d bytes are counted, want %d", got, before)
	}
	if code, _ := send(again.victim, "orders", 0, idempotentBatch(id, 0, 1)); code != 0 {
		t.Errorf("next batch: got code %d, want 0", code)
	}
	if code, _ := send(again.victim, "orders", 1, idempotentBatch(unused, 0, 0)); code != 0 {
		t.Errorf("id that was issued but not used before: got code %d, want 0", code)
	}
	if code, _ := send(again.attacker, "orders", 0, idempotentBatch(id, 1, 0)); code != kerr.InvalidProducerEpoch.Code {
		t.Errorf("other account: got code %d, want %d", code, kerr.InvalidProducerEpoch.Code)
	}
	if next := newID(again.victim); next <= unused {
		t.Errorf("got id %d after a restart, want one above %d", next, unused)
	}
}
