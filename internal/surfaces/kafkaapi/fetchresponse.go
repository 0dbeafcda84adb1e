package kafkaapi

import (
	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fetchResponse is the response of Fetch.
//
// The codec's type holds the batches of a partition in one slice, which would copy them twice more.
// Here each partition owns its batches, and encoding the partition appends them to the frame. So no
// lookup connects batches and partitions, and the order in which partitions were read does not
// matter.
type fetchResponse struct {
	version        int16
	throttleMillis int32
	errorCode      code
	sessionID      int32
	topics         []fetchResponseTopic
	topicIndex     map[topicKey]int           // topic → index in topics
	brokers        []kmsg.FetchResponseBroker // leaders that partitions refer to
}

type fetchResponseTopic struct {
	topicKey
	partitions []fetchResponsePartition
}

// fetchResponsePartition is one partition of a response. Omitted fields have the same value in all
// responses: without transactions the last stable offset is the high watermark, and consumers read
// only from leaders.
type fetchResponsePartition struct {
	index         int32
	errorCode     code
	highWatermark int64
	logStart      int64
	leader        kmsg.FetchResponseTopicPartitionCurrentLeader // set when another member leads the partition
	// diverging is set when the client has records of an epoch beyond the end that the epoch has here.
	diverging kmsg.FetchResponseTopicPartitionDivergingEpoch
	batches   segmentedBuffer
}

func newFetchResponsePartition(index int32) fetchResponsePartition {
	return fetchResponsePartition{
		index: index, highWatermark: -1, logStart: -1,
		leader:    kmsg.NewFetchResponseTopicPartitionCurrentLeader(),
		diverging: kmsg.NewFetchResponseTopicPartitionDivergingEpoch(),
	}
}

// diverges reports whether the partition has a diverging epoch.
func (p *fetchResponsePartition) diverges() bool {
	return p.diverging.Epoch != -1 || p.diverging.EndOffset != -1
}

// add adds a partition to the row of its topic.
func (r *fetchResponse) add(topic topicKey, part *fetchResponsePartition) {
	row, ok := r.topicIndex[topic]
	if !ok {
		if r.topicIndex == nil {
			r.topicIndex = make(map[topicKey]int)
		}
		row = len(r.topics)
		r.topicIndex[topic] = row
		r.topics = append(r.topics, fetchResponseTopic{topicKey: topic})
	}
	r.topics[row].partitions = append(r.topics[row].partitions, *part)
}

// reset removes the topics and frees their batches.
func (r *fetchResponse) reset() {
	for i := range r.topics {
		for j := range r.topics[i].partitions {
			r.topics[i].partitions[j].batches.free()
		}
	}
	r.topics, r.topicIndex, r.brokers = nil, nil, nil
}

// SetThrottle implements kmsg.SetThrottleResponse.
func (r *fetchResponse) SetThrottle(millis int32) { r.throttleMillis = millis }

// AppendTo appends the response as one slice.
func (r *fetchResponse) AppendTo(dst []byte) []byte {
	w := frameWriter{tail: dst}
	r.writeTo(&w)
	whole, _ := w.parts()
	if len(whole) == 1 {
		return whole[0]
	}
	var all []byte
	for _, part := range whole {
		all = append(all, part...)
	}
	return all
}

// writeTo encodes the response, versions 4 to 17.
func (r *fetchResponse) writeTo(w *frameWriter) {
	flexible := r.version >= 12
	w.tail = kbin.AppendInt32(w.tail, r.throttleMillis)
	if r.version >= 7 {
		w.tail = kbin.AppendInt16(w.tail, r.errorCode)
		w.tail = kbin.AppendInt32(w.tail, r.sessionID)
	}
	w.arrayLen(flexible, len(r.topics))
	for i := range r.topics {
		topic := &r.topics[i]
		switch {
		case r.version >= 13:
			w.tail = kbin.AppendUuid(w.tail, topic.id)
		case flexible:
			w.tail = kbin.AppendCompactString(w.tail, topic.topic)
		default:
			w.tail = kbin.AppendString(w.tail, topic.topic)
		}
		w.arrayLen(flexible, len(topic.partitions))
		for j := range topic.partitions {
			topic.partitions[j].writeTo(w, r.version)
		}
		if flexible {
			w.tail = append(w.tail, 0) // no tagged fields
		}
	}
	if flexible {
		r.writeTags(w)
	}
}

func (p *fetchResponsePartition) writeTo(w *frameWriter, version int16) {
	flexible := version >= 12
	w.tail = kbin.AppendInt32(w.tail, p.index)
	w.tail = kbin.AppendInt16(w.tail, p.errorCode)
	w.tail = kbin.AppendInt64(w.tail, p.highWatermark)
	w.tail = kbin.AppendInt64(w.tail, p.highWatermark) // the last stable offset
	if version >= 5 {
		w.tail = kbin.AppendInt64(w.tail, p.logStart)
	}
	if flexible { // no list of aborted transactions
		w.tail = kbin.AppendCompactNullableArrayLen(w.tail, 0, true)
	} else {
		w.tail = kbin.AppendNullableArrayLen(w.tail, 0, true)
	}
	if version >= 11 {
		w.tail = kbin.AppendInt32(w.tail, -1) // no preferred read replica
	}
	if flexible {
		w.tail = kbin.AppendUvarint(w.tail, uint32(p.batches.size)+1) //nolint:gosec // bounded by maxFetchBytes
	} else {
		w.tail = kbin.AppendInt32(w.tail, int32(p.batches.size)) //nolint:gosec // bounded by maxFetchBytes
	}
	w.appendSegments(&p.batches)
	if flexible {
		p.writeTags(w)
	}
}

// Numbers of tagged fields, of a partition and of the response.
const (
	tagDivergingEpoch = 0
	tagCurrentLeader  = 1
	tagBrokers        = 0 // from version 16 on
)

func (p *fetchResponsePartition) writeTags(w *frameWriter) {
	var tags []tag
	if p.diverges() {
		diverging := kbin.AppendInt32(nil, p.diverging.Epoch)
		diverging = kbin.AppendInt64(diverging, p.diverging.EndOffset)
		tags = append(tags, tag{tagDivergingEpoch, append(diverging, 0)})
	}
	if p.leader.LeaderID != -1 || p.leader.LeaderEpoch != -1 {
		leader := kbin.AppendInt32(nil, p.leader.LeaderID)
		leader = kbin.AppendInt32(leader, p.leader.LeaderEpoch)
		tags = append(tags, tag{tagCurrentLeader, append(leader, 0)})
	}
	w.tags(tags...)
}

func (r *fetchResponse) writeTags(w *frameWriter) {
	if len(r.brokers) == 0 || r.version < 16 {
		w.tags()
		return
	}
	brokers := kbin.AppendCompactArrayLen(nil, len(r.brokers))
	for i := range r.brokers {
		b := &r.brokers[i]
		brokers = kbin.AppendInt32(brokers, b.NodeID)
		brokers = kbin.AppendCompactString(brokers, b.Host)
		brokers = kbin.AppendInt32(brokers, b.Port)
		brokers = kbin.AppendCompactNullableString(brokers, b.Rack)
		brokers = append(brokers, 0)
	}
	w.tags(tag{tagBrokers, brokers})
}
