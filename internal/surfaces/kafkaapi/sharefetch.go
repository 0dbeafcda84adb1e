package kafkaapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/base/retry"
	"freshet/internal/base/unpacking"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
	"freshet/internal/storage/engine"
)

const (
	maxShareWaits  = 16                     // partitions that one request waits for at the same time
	maxShareWait   = 20 * time.Second       // until a request looks at its partitions again
	shareWaitSlice = 500 * time.Millisecond // until a request with more partitions looks at all of them again
	// maxAcquireBytes bounds the records of one partition that one request leases.
	maxAcquireBytes = 8 << 20
)

// acquireBatches is the acquire mode in which the limit of records may be exceeded to acquire whole batches.
const acquireBatches int8 = 0

// shareFetchCall is a ShareFetch request in progress.
type shareFetchCall struct {
	c        *call
	request  *kmsg.ShareFetchRequest
	response *kmsg.ShareFetchResponse
	session  *shareSession
	group    string
	config   messaging.GroupConfig

	rows        map[sharePartition]*kmsg.ShareFetchResponseTopicPartition
	order       []sharePartition // of the rows
	recordsLeft int
	bytesLeft   int
	bytes       int // of record batches in the response
	missing     int // room that the first batch needs and did not get, bytes
	failed      bool
	waited      map[sharePartition][]engine.Delivery // leases that a wait has got
}

func shareFetch(ctx context.Context, c *call, request *kmsg.ShareFetchRequest,
	response *kmsg.ShareFetchResponse,
) error {
	ctx = access.WithBudget(c.workContext(ctx))
	f := shareFetchCall{
		c: c, request: request, response: response, group: deref(request.GroupID),
		rows: make(map[sharePartition]*kmsg.ShareFetchResponseTopicPartition),
	}
	acks, err := f.plan(ctx)
	if err != nil {
		response.ErrorCode, response.ErrorMessage = c.errorResponse(err)
		return ctx.Err()
	}
	f.config = f.session.shares.GroupConfig(f.session.key.tenant, f.group)
	if f.config.Lease > 0 {
		f.session.lock = f.config.Lease
	}
	if err := f.acknowledge(ctx, acks); err != nil {
		return err
	}
	if request.ShareSessionEpoch != sessionNone && !request.IsRenewAck {
		if err := f.execute(ctx); err != nil {
			return err
		}
	}
	f.respond()
	if request.ShareSessionEpoch == sessionNone {
		c.conn.endShareSession()
	}
	return nil
}

// plan checks the request, determines its session, and returns its acknowledgements.
func (f *shareFetchCall) plan(ctx context.Context) (acks []shareAcks, err error) {
	c, request := f.c, f.request
	member := deref(request.MemberID)
	partitions := partitionsIn(request.Topics, func(t *kmsg.ShareFetchRequestTopic) int { return len(t.Partitions) }) +
		partitionsIn(request.ForgottenTopicsData,
			func(t *kmsg.ShareFetchRequestForgottenTopicsData) int { return len(t.Partitions) })
	if err := checkRequestSize(len(request.Topics), partitions); err != nil {
		return nil, err
	}
	if err := c.beginShareCall(ctx, f.group, member); err != nil {
		return nil, err
	}
	var listed []sharePartition
	for i := range request.Topics {
		topic := &request.Topics[i]
		for j := range topic.Partitions {
			at := sharePartition{topic.TopicID, topic.Partitions[j].Partition}
			listed = append(listed, at)
			if given := topic.Partitions[j].AcknowledgementBatches; len(given) > 0 {
				acks = append(acks, shareAcks{at, ackBatches(given)})
			}
		}
	}
	if request.IsRenewAck && (request.MaxBytes > 0 || request.MaxRecords > 0 || request.MaxWaitMillis > 0) {
		return nil, fmt.Errorf("%w: request that renews leases must not fetch records", errInvalid)
	}
	if err := checkAckBatches(acks); err != nil {
		return nil, err
	}
	if request.ShareSessionEpoch == sessionInitial {
		if len(acks) > 0 {
			return nil, fmt.Errorf("%w: first request of a share session acknowledges records", errInvalid)
		}
		f.session, err = c.conn.openShareSession(c.shareKey(f.group, member), c.session.cluster.Shares, unique(listed))
		return nil, err
	}
	if f.session, err = c.nextShareEpoch(f.group, member, request.ShareSessionEpoch); err != nil {
		return nil, err
	}
	forgotten := make(map[sharePartition]bool)
	for i := range request.ForgottenTopicsData {
		for _, p := range request.ForgottenTopicsData[i].Partitions {
			forgotten[sharePartition{request.ForgottenTopicsData[i].TopicID, p}] = true
		}
	}
	next := unique(slices.Concat(f.session.order, listed))
	next = slices.DeleteFunc(next, func(p sharePartition) bool { return forgotten[p] })
	if !c.conn.server.setSharePartitions(f.session, next) {
		return nil, errShareLimit
	}
	return acks, nil
}

// unique removes repeated partitions.
func unique(parts []sharePartition) []sharePartition {
	seen := make(map[sharePartition]bool, len(parts))
	return slices.DeleteFunc(parts, func(p sharePartition) bool {
		was := seen[p]
		seen[p] = true
		return was
	})
}

func ackBatches(given []kmsg.ShareFetchRequestTopicPartitionAcknowledgementBatch) (
	all []kmsg.ShareAcknowledgeRequestTopicPartitionAcknowledgementBatch,
) {
	for i := range given {
		all = append(all, kmsg.ShareAcknowledgeRequestTopicPartitionAcknowledgementBatch{
			FirstOffset: given[i].FirstOffset, LastOffset: given[i].LastOffset,
			AcknowledgeTypes: given[i].AcknowledgeTypes,
		})
	}
	return all
}

// row returns the row of a partition in the response.
func (f *shareFetchCall) row(at sharePartition) *kmsg.ShareFetchResponseTopicPartition {
	row := f.rows[at]
	if row == nil {
		part := kmsg.NewShareFetchResponseTopicPartition()
		part.Partition, part.Records = at.partition, []byte{}
		row = &part
		f.rows[at] = row
		f.order = append(f.order, at)
	}
	return row
}

// acknowledge applies the acknowledgements of the request.
func (f *shareFetchCall) acknowledge(ctx context.Context, acks []shareAcks) error {
	a := &shareAckCall{c: f.c, session: f.session, group: f.group, renews: f.request.IsRenewAck}
	for i := range acks {
		row := f.row(acks[i].sharePartition)
		topic, err := a.apply(ctx, &acks[i])
		if ctx.Err() != nil {
			return ctx.Err()
		}
		row.AcknowledgeErrorCode, row.AcknowledgeErrorMessage = f.c.shareError(err)
		f.addLeader(row, topic, err)
	}
	return nil
}

// addLeader adds the current leader to the row of a partition that another member leads.
func (f *shareFetchCall) addLeader(row *kmsg.ShareFetchResponseTopicPartition, topic *messaging.KafkaTopic, err error) {
	at, epoch, ok := f.c.newLeader(topic, err)
	if !ok {
		return
	}
	row.CurrentLeader.LeaderID, row.CurrentLeader.LeaderEpoch = at.ID, epoch
	if !slices.ContainsFunc(f.response.NodeEndpoints,
		func(n kmsg.ShareFetchResponseNodeEndpoint) bool { return n.NodeID == at.ID }) {
		f.response.NodeEndpoints = append(f.response.NodeEndpoints,
			kmsg.ShareFetchResponseNodeEndpoint{NodeID: at.ID, Host: at.Host, Port: at.Port, Rack: f.c.rack()})
	}
}

// execute acquires records, and waits while there are none.
func (f *shareFetchCall) execute(ctx context.Context) error {
	deadline := time.Now().Add(min(time.Duration(f.request.MaxWaitMillis)*time.Millisecond, maxFetchWait))
	if f.recordsLeft = int(f.request.MaxRecords); f.recordsLeft <= 0 || f.request.MaxBytes <= 0 {
		return nil
	}
	defer f.giveBackWaited(ctx)
	for {
		if err := f.acquireWithRoom(ctx); err != nil {
			return err
		}
		left := time.Until(deadline)
		if f.bytes > 0 || f.failed || left <= 0 || len(f.session.order) == 0 || f.c.conn.server.draining.Err() != nil {
			return nil
		}
		if err := f.await(ctx, left); err != nil {
			return err
		}
		if !f.c.session.principal.Live() {
			return errRevoked
		}
	}
}

// acquireWithRoom acquires records for which the response has room. If there is no room for the first batch, it waits
// for room, without leases and without a permit, and acquires again.
func (f *shareFetchCall) acquireWithRoom(ctx context.Context) error {
	c := f.c
	for {
		permit, err := c.conn.takePermit(ctx, c.conn.server.fetchLimiter, c.session)
		if err != nil {
			return err
		}
		f.missing, f.bytesLeft = 0, min(int(f.request.MaxBytes), maxFetchBytes)-f.bytes
		err = f.acquireAll(ctx)
		permit.release()
		if err != nil {
			return err
		}
		if f.missing == 0 {
			c.room.shrink(2 * int64(f.bytes))
			return nil
		}
		if err := c.room.await(ctx, 2*int64(f.missing)); err != nil {
			return err
		}
	}
}

// acquireAll acquires records of the session's partitions. Those with records move to the end, so that all partitions
// get their turn.
func (f *shareFetchCall) acquireAll(ctx context.Context) error {
	var full []sharePartition
	for _, at := range f.session.order {
		waited := f.waited[at]
		delete(f.waited, at)
		if f.recordsLeft <= 0 || f.bytesLeft <= 0 || f.missing > 0 {
			f.giveBack(ctx, waited)
			continue
		}
		n, topic, err := f.acquire(ctx, at, waited)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			row := f.row(at)
			row.ErrorCode, row.ErrorMessage = f.c.shareError(err)
			if errors.Is(err, unpacking.ErrBusy) {
				row.ErrorCode = codeStorage // consumers retry it
			}
			f.addLeader(row, topic, err)
			f.failed = true
		}
		if n > 0 {
			full = append(full, at)
		}
	}
	if len(full) > 0 {
		rest := slices.DeleteFunc(slices.Clone(f.session.order), func(p sharePartition) bool {
			return slices.Contains(full, p)
		})
		f.session.order = append(rest, full...)
	}
	return nil
}

// giveBack returns leases whose records the member does not get, without counting a delivery.
func (f *shareFetchCall) giveBack(ctx context.Context, got []engine.Delivery) {
	if len(got) == 0 {
		return
	}
	topic, err := f.c.session.cluster.Topics.KafkaTopicByID(ctx, uint64(got[0].ID.Topic))
	if err != nil {
		return // without the topic nothing is leased any more
	}
	returned := make([]engine.Settlement, len(got))
	for i := range got {
		returned[i] = engine.Settlement{ID: got[i].ID, Action: engine.Return, Delivery: got[i].Redeliveries + 1}
	}
	_ = f.session.shares.Settle(ctx, topic, f.group, returned) // leases that stay expire
}

// acquire acquires records of one partition and adds them to the response. It returns their number.
func (f *shareFetchCall) acquire(ctx context.Context, at sharePartition, waited []engine.Delivery) (
	n int, topic *messaging.KafkaTopic, err error,
) {
	topic, err = f.c.sharePartitionOf(ctx, at, f.group)
	if err != nil {
		f.giveBack(ctx, waited)
		return 0, topic, err
	}
	got, start := waited, time.Now()
	if most := min(f.recordsLeft, f.c.conn.server.mayAcquire(f.session, at)) - len(waited); most > 0 {
		more, err := f.session.shares.Acquire(ctx, topic, f.group, messaging.ShareRequest{
			Partition: at.partition, Max: most, MaxBytes: min(f.bytesLeft, maxAcquireBytes), Lease: f.config.Lease,
		})
		if err != nil && len(got) == 0 {
			return 0, topic, err
		}
		got = append(got, more...)
	}
	if len(got) == 0 {
		return 0, topic, nil
	}
	slices.SortFunc(got, func(a, b engine.Delivery) int { return cmp.Compare(a.ID.Entry, b.ID.Entry) })
	records, fits, end, err := f.readBatches(ctx, topic, at, got)
	whole := fits == len(got)
	f.giveBack(ctx, got[fits:])
	if got = got[:fits]; len(got) == 0 {
		return 0, topic, err
	}
	if whole && f.request.ShareAcquireMode == acquireBatches {
		got = f.acquireRest(ctx, topic, at, got, end)
	}
	if !f.c.conn.server.addAcquired(f.session, at, topic, got) {
		f.giveBack(ctx, got)
		return 0, topic, nil
	}
	if f.config.Lease == 0 {
		f.session.lock = max(got[0].LeasedUntil.Sub(start).Round(time.Second), time.Second)
	}
	row := f.row(at)
	row.Records, row.AcquiredRecords = records, f.acquiredRanges(got)
	f.recordsLeft -= len(got)
	f.bytes += len(records)
	f.bytesLeft -= len(records)
	f.session.shares.CountDelivered(topic, f.group, len(got), len(records))
	return len(got), topic, nil
}

// acquireRest acquires also the rest of the last batch, which ends before end, so that it need not be sent again for
// each part of it.
func (f *shareFetchCall) acquireRest(ctx context.Context, topic *messaging.KafkaTopic, at sharePartition,
	got []engine.Delivery, end uint64,
) []engine.Delivery {
	last := got[len(got)-1].ID.Entry
	if end <= last+1 {
		return got
	}
	most := min(end-last-1, uint64(max(f.c.conn.server.mayAcquire(f.session, at)-len(got), 0)))
	if most == 0 {
		return got
	}
	more, err := f.session.shares.Acquire(ctx, topic, f.group, messaging.ShareRequest{
		Partition: at.partition, Max: int(most), MaxBytes: maxAcquireBytes, //nolint:gosec // at most maxAcquired
		Lease: f.config.Lease,
	})
	if err != nil {
		return got // the next request reports it
	}
	outside := slices.DeleteFunc(slices.Clone(more), func(d engine.Delivery) bool {
		return d.ID.Entry > last && d.ID.Entry < end
	})
	f.giveBack(ctx, outside)
	for i := range more {
		if more[i].ID.Entry > last && more[i].ID.Entry < end {
			got = append(got, more[i])
		}
	}
	return got
}

// readBatches returns the stored batches that contain the leased records, how many of the records they contain, and the
// offset after the last batch. A batch may contain other records too; the client ignores those that it has not
// acquired.
func (f *shareFetchCall) readBatches(ctx context.Context, topic *messaging.KafkaTopic, at sharePartition,
	got []engine.Delivery,
) (records []byte, fits int, end uint64, err error) {
	b := batches{limit: f.bytesLeft, acceptFirst: f.bytes == 0, reserve: f.reserve}
	defer func() { b.out.free() }()
	for fits < len(got) && err == nil && !b.full {
		wanted := got[fits].ID.Entry
		read := wanted // end of what was read
		_, err = topic.Read(ctx, at.partition, wanted, func(s *engine.StoredValue) (bool, error) {
			if s.First > wanted {
				read = s.First // the record was trimmed meanwhile; the client acknowledges a gap
				return false, nil
			}
			more, err := b.add(s)
			if err != nil || b.next <= wanted {
				return false, err // it did not fit
			}
			read = b.next
			for fits < len(got) && got[fits].ID.Entry < read {
				fits++
			}
			if fits == len(got) || !more {
				return false, nil
			}
			wanted = got[fits].ID.Entry
			return wanted == read, nil
		})
		b.flush() // so that a built batch has no gaps
		before := fits
		for fits < len(got) && got[fits].ID.Entry < read {
			fits++
		}
		if read <= wanted && fits == before {
			break // there is nothing to read
		}
	}
	if b.out.size == 0 {
		return nil, 0, 0, err
	}
	records = make([]byte, 0, b.out.size)
	for _, segment := range b.out.segments {
		records = append(records, segment...)
	}
	return records, fits, b.next, nil
}

// reserve takes room for n more bytes of a partition that has some bytes: for the records, and for the encoded
// response. It does not wait.
func (f *shareFetchCall) reserve(has, n int) bool {
	need := 2 * int64(f.bytes+has+n)
	if f.c.room.fit(need, max(need, 2*int64(f.bytes+f.bytesLeft))) {
		return true
	}
	if f.bytes+has == 0 {
		f.missing = n
	}
	f.bytesLeft = 0
	return false
}

// acquiredRanges returns leased records as ranges of consecutive offsets with the same delivery count. The client
// acknowledges a range at once, so a range has at most the number of records that the client prefers.
func (f *shareFetchCall) acquiredRanges(got []engine.Delivery) (
	ranges []kmsg.ShareFetchResponseTopicPartitionAcquiredRecord,
) {
	most := int64(maxAcquired)
	if f.request.BatchSize > 0 {
		most = min(most, int64(f.request.BatchSize))
	}
	for i := range got {
		offset := int64(got[i].ID.Entry)                                  //nolint:gosec // offsets are far below 2^63
		count := int16(min(int64(got[i].Redeliveries)+1, int64(1<<15-1))) //nolint:gosec // bounded
		if n := len(ranges) - 1; n >= 0 && ranges[n].LastOffset == offset-1 && ranges[n].DeliveryCount == count &&
			offset-ranges[n].FirstOffset < most {
			ranges[n].LastOffset = offset
			continue
		}
		row := kmsg.NewShareFetchResponseTopicPartitionAcquiredRecord()
		row.FirstOffset, row.LastOffset, row.DeliveryCount = offset, offset, count
		ranges = append(ranges, row)
	}
	return ranges
}

// await waits for a record of one of the session's partitions and leases it.
func (f *shareFetchCall) await(ctx context.Context, left time.Duration) error {
	left = min(left, maxShareWait)
	if len(f.session.order) > maxShareWaits {
		left = min(left, shareWaitSlice)
	}
	waiting, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	defer context.AfterFunc(f.c.conn.server.draining, cancel)()
	var wg sync.WaitGroup
	var mu sync.Mutex
	f.waited = make(map[sharePartition][]engine.Delivery)
	for _, at := range f.session.order[:min(len(f.session.order), maxShareWaits)] {
		topic, err := f.c.sharePartitionOf(ctx, at, f.group)
		if err != nil || f.c.conn.server.mayAcquire(f.session, at) <= 0 {
			continue
		}
		wg.Go(func() {
			got, err := f.session.shares.Acquire(waiting, topic, f.group, messaging.ShareRequest{
				Partition: at.partition, Max: 1, Wait: left, Lease: f.config.Lease,
			})
			if err == nil && len(got) == 0 || errors.Is(err, messaging.ErrTooMany) {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				f.waited[at] = got
			}
			cancel() // with an error too: the next attempt reports it
		})
	}
	wg.Wait()
	_ = retry.Sleep(waiting, left) // for the partitions that nobody waits for
	return ctx.Err()
}

// giveBackWaited returns the leases that a wait has got and that no response contains.
func (f *shareFetchCall) giveBackWaited(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shareReleaseTimeout)
	defer cancel()
	for _, got := range f.waited {
		f.giveBack(ctx, got)
	}
	f.waited = nil
}

// respond fills in the response.
func (f *shareFetchCall) respond() {
	f.response.AcquisitionLockTimeoutMillis = int32(f.session.lock.Milliseconds()) //nolint:gosec // at most 12 hours
	index := make(map[[16]byte]int)
	for _, at := range f.order {
		n, ok := index[at.id]
		if !ok {
			row := kmsg.NewShareFetchResponseTopic()
			row.TopicID = at.id
			n = len(f.response.Topics)
			index[at.id] = n
			f.response.Topics = append(f.response.Topics, row)
		}
		f.response.Topics[n].Partitions = append(f.response.Topics[n].Partitions, *f.rows[at])
	}
}
