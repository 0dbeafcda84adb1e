package kafkaapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"freshet/internal/base/errs"
	"freshet/internal/base/unpacking"
	"freshet/internal/base/workpool"
	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/broker/records"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/statemachine"
)

// code is a Kafka error code.
type code = int16

// The codes that are used.
const (
	codeUnknown           code = -1
	codeOK                code = 0
	codeOffsetOutOfRange  code = 1
	codeCorruptMessage    code = 2
	codeUnknownTopic      code = 3
	codeNoLeader          code = 5
	codeNotLeader         code = 6
	codeTimedOut          code = 7
	codeMessageTooLarge   code = 10
	codeOffsetMetadata    code = 12
	codeNotAvailable      code = 15
	codeNotCoordinator    code = 16
	codeInvalidTopic      code = 17
	codeNotEnoughReplicas code = 19
	codeInvalidAcks       code = 21
	codeIllegalGeneration code = 22
	codeProtocol          code = 23
	codeInvalidGroup      code = 24
	codeUnknownMember     code = 25
	codeSessionTimeout    code = 26
	codeRebalancing       code = 27
	codeTopicDenied       code = 29
	codeGroupDenied       code = 30
	codeClusterDenied     code = 31
	codeTimestamp         code = 32
	codeMechanism         code = 33
	codeSASLState         code = 34
	codeVersion           code = 35
	codeTopicExists       code = 36
	codePartitions        code = 37
	codeConfig            code = 40
	codeInvalidRequest    code = 42
	codePolicy            code = 44
	codeSequence          code = 45
	codeProducerEpoch     code = 47
	codeTransactionState  code = 48
	codeProducerID        code = 49
	codeTransactionDenied code = 53
	codeStorage           code = 56
	codeAuthentication    code = 58
	codeNotEmpty          code = 68
	codeNoGroup           code = 69
	codeSessionID         code = 70
	codeSessionEpoch      code = 71
	codeFencedEpoch       code = 74
	codeUnknownEpoch      code = 75
	codeCompression       code = 76
	codeMemberID          code = 79
	codeGroupFull         code = 81
	codeFencedInstance    code = 82
	codeSubscribed        code = 86
	codeInvalidRecord     code = 87
	codeUnknownTopicID    code = 100
	codeSessionTopicID    code = 106
	codeFencedMemberEpoch code = 110
	codeUnreleased        code = 111
	codeAssignor          code = 112
	codeStaleMemberEpoch  code = 113
	codeWrongEndpoint     code = 114
	codeUnknownEndpoint   code = 115
	codeRecordState       code = 121
	codeShareSession      code = 122
	codeShareEpoch        code = 123
	codePattern           code = 128
	codeShareLimit        code = 133
)

// errorCodes maps the errors of the layers below to error codes (docs/spec/stream.md#errors). The first
// match counts.
var errorCodes = []struct {
	err  error
	code code
}{
	{engine.ErrNoPartition, codeUnknownTopic},
	{messaging.ErrNoTopic, codeUnknownTopic},
	{messaging.ErrNoTenant, codeUnknownTopic},
	{messaging.ErrNoNamespace, codeUnknownTopic},
	{messaging.ErrName, codeInvalidTopic},
	{messaging.ErrPartitionName, codeInvalidTopic},
	{messaging.ErrDottedName, codeInvalidTopic},
	{messaging.ErrTopicExists, codeTopicExists},
	{messaging.ErrPartitionCount, codePartitions},
	{messaging.ErrWrongKind, codePartitions},
	{messaging.ErrConfig, codeConfig},
	{messaging.ErrPolicy, codeConfig},
	{messaging.ErrTopicLimit, codePolicy},
	{messaging.ErrNoAutoCreation, codeUnknownTopic},
	{engine.ErrTerminated, codePolicy},
	{engine.ErrBacklogFull, codeNotEnoughReplicas},
	{engine.ErrBusy, codeNotEnoughReplicas},
	{engine.ErrDiskFull, codeStorage},
	{engine.ErrFailed, codeStorage},
	{engine.ErrClosed, codeNotLeader},
	{engine.ErrNotOwner, codeNotLeader},
	{engine.ErrNoOwner, codeNoLeader},
	{messaging.ErrClosing, codeNotLeader},
	{engine.ErrCorrupt, codeCorruptMessage},
	{messaging.ErrTransaction, codeTransactionState},
	{messaging.ErrProducerEpoch, codeProducerEpoch},
	{messaging.ErrProducerID, codeProducerID},
	{messaging.ErrUnissuedEpoch, codeProducerEpoch},
	{messaging.ErrSequence, codeSequence},
	{messaging.ErrPayload, codeInvalidRecord},
	{messaging.ErrSchemaPrefix, codeInvalidRecord},
	{messaging.ErrContract, codeInvalidRecord},
	{messaging.ErrMessage, codeInvalidRecord},
	{messaging.ErrTooLarge, codeMessageTooLarge},
	{messaging.ErrBatch, codeMessageTooLarge},
	{messaging.ErrNoDelay, codeInvalidRecord},
	{messaging.ErrDamagedMessage, codeCorruptMessage},
	{messaging.ErrNoMessage, codeOffsetOutOfRange},
	{messaging.ErrNoPosition, codeOffsetOutOfRange},
	{messaging.ErrForeignID, codeInvalidRequest},
	{messaging.ErrMessageID, codeInvalidRequest},
	{messaging.ErrPartitioned, codeInvalidRequest},
	{messaging.ErrTenantExists, codeInvalidRequest},
	{messaging.ErrNamespaceExists, codeInvalidRequest},
	{messaging.ErrShadows, codeInvalidRequest},
	{messaging.ErrTenantBusy, codePolicy},
	{messaging.ErrNamespaceBusy, codePolicy},
	{messaging.ErrTopicBusy, codePolicy},
	{messaging.ErrTooMuchData, codePolicy},
	{messaging.ErrNoRegistry, codePolicy},
	{messaging.ErrTooMany, codeNotEnoughReplicas},
	{messaging.ErrNoSchema, codeInvalidRecord},
	{messaging.ErrInvalidSchema, codeInvalidRecord},
	{messaging.ErrIncompatibleSchema, codeInvalidRecord},
	{messaging.ErrSchemaUpdate, codeTopicDenied},
	{messaging.ErrNoSubscription, codeNoGroup},
	{messaging.ErrSubscriptionExists, codeInvalidRequest},
	{messaging.ErrSubscriptionBusy, codeNotEmpty},
	{messaging.ErrLeaseEnded, codeRecordState},
	{engine.ErrInvalid, codeInvalidRequest},
	{engine.ErrConflict, codeNotAvailable},
	{engine.ErrNewerFormat, codeStorage},
	{engine.ErrLogLost, codeStorage},
	{engine.ErrJournalLost, codeStorage},
	{engine.ErrNotOpen, codeStorage},
	{engine.ErrOpening, codeNotAvailable},
	{engine.ErrNoSelector, codeNotAvailable}, // the broker is starting
	{statemachine.ErrClosed, codeNotAvailable},
	{statemachine.ErrBroken, codeStorage},
	{statemachine.ErrContended, codeNotAvailable},
	{unpacking.ErrBusy, codeNotEnoughReplicas},
	{workpool.ErrBusy, codeNotEnoughReplicas},
	{records.ErrCorrupt, codeCorruptMessage},
	{records.ErrTooLarge, codeMessageTooLarge},
	{records.ErrCodec, codeCompression},
	{records.ErrTimestamp, codeTimestamp},
	{records.ErrInvalid, codeInvalidRecord},
	{groups.ErrInvalidHeartbeat, codeInvalidRequest},
	{groups.ErrGroupID, codeInvalidGroup},
	{groups.ErrSessionTimeout, codeSessionTimeout},
	{groups.ErrUnknownMember, codeUnknownMember},
	{groups.ErrGeneration, codeIllegalGeneration},
	{groups.ErrProtocol, codeProtocol},
	{groups.ErrRebalancing, codeRebalancing},
	{groups.ErrFencedInstance, codeFencedInstance},
	{groups.ErrMemberIDRequired, codeMemberID},
	{groups.ErrGroupFull, codeGroupFull},
	{groups.ErrTooManyGroups, codePolicy},
	{groups.ErrTooLarge, codeInvalidRequest},
	{groups.ErrOffsetMetadata, codeOffsetMetadata},
	{groups.ErrTooManyOffsets, codeInvalidRequest},
	{groups.ErrNotEmpty, codeNotEmpty},
	{groups.ErrNoGroup, codeNoGroup},
	{groups.ErrNotCoordinator, codeNotCoordinator},
	{groups.ErrClosed, codeNotCoordinator},
	{groups.ErrNotConsumerProtocol, codeNoGroup},
	{groups.ErrFencedEpoch, codeFencedMemberEpoch},
	{groups.ErrStaleEpoch, codeStaleMemberEpoch},
	{groups.ErrUnreleasedInstance, codeUnreleased},
	{groups.ErrAssignor, codeAssignor},
	{groups.ErrPattern, codePattern},
	{groups.ErrCommitVersion, codeVersion},
	{groups.ErrTooManyPartitions, codeInvalidRequest},
	{errTopicDenied, codeTopicDenied},
	{errGroupDenied, codeGroupDenied},
	{groups.ErrDenied, codeGroupDenied},
	{errClusterDenied, codeClusterDenied},
	{errTopicID, codeUnknownTopicID},
	{errInvalid, codeInvalidRequest},
	{errSessionID, codeSessionID},
	{errSessionEpoch, codeSessionEpoch},
	{errSessionTopic, codeSessionTopicID},
	{errRecordState, codeRecordState},
	{errShareSession, codeShareSession},
	{errShareEpoch, codeShareEpoch},
	{errShareLimit, codeShareLimit},
	{errTimestampVersion, codeVersion},
	{errClassicMetadata, codeProtocol},
	{errReadOnly, codePolicy},
	{errCompacted, codePolicy},
	{errSubscribed, codeSubscribed},
}

// errInvalid means that a request is inconsistent or exceeds a limit.
var errInvalid = errors.New("request is not valid")

// Limits of one request (docs/spec/stream.md#limits).
const (
	maxTopics     = 10_000
	maxPartitions = 100_000
)

// partitionsIn returns the number of partitions of a request's topics.
func partitionsIn[T any](topics []T, of func(*T) int) (n int) {
	for i := range topics {
		n += of(&topics[i])
	}
	return n
}

// checkRequestSize returns an error unless a request is within the limits.
func checkRequestSize(topics, partitions int) error {
	if topics > maxTopics || partitions > maxPartitions {
		return fmt.Errorf("%w: at most %d topics and %d partitions are allowed per request", errInvalid, maxTopics,
			maxPartitions)
	}
	return nil
}

// checkTopics is checkRequestSize for a list of topics with partitions.
func checkTopics[T any](topics []T, partitions func(*T) int) error {
	return checkRequestSize(len(topics), partitionsIn(topics, partitions))
}

// occurrences counts how often each key occurs in a request.
type occurrences[K comparable] struct {
	count map[K]int
	done  map[K]bool // keys with a row in the response
}

func countOccurrences[T any, K comparable](items []T, key func(*T) K) occurrences[K] {
	seen := occurrences[K]{make(map[K]int, len(items)), make(map[K]bool)}
	for i := range items {
		seen.count[key(&items[i])]++
	}
	return seen
}

// isFirst reports whether it is called for a key for the first time. As in Kafka, a response has one row for a
// key that occurs twice.
func (o occurrences[K]) isFirst(key K) bool {
	if o.done[key] {
		return false
	}
	o.done[key] = true
	return true
}

// checkOnce returns an error for a key that occurs twice, because the intended change would be
// ambiguous.
func (o occurrences[K]) checkOnce(key K, name string) error {
	if o.count[key] > 1 {
		return fmt.Errorf("%w: %s occurs twice", errInvalid, name)
	}
	return nil
}

// codeOf returns the code of an error, and whether the error is known.
func codeOf(err error) (code, bool) {
	if err == nil {
		return codeOK, true
	}
	for _, row := range errorCodes {
		if errors.Is(err, row.err) {
			return row.code, true
		}
	}
	switch errs.KindOf(err) {
	case errs.Exhausted:
		return codePolicy, true
	case errs.TooLarge:
		return codeMessageTooLarge, true
	case errs.Unavailable:
		return codeNotAvailable, true
	}
	return codeUnknown, false
}

// errorResponse returns the code of an error and the text that a client may see. It logs unknown errors and
// errors about unusable data. The calls of a client that is gone are canceled, which is no failure. Without an
// error the text is null.
func (c *call) errorResponse(err error) (code, *string) {
	if err == nil {
		return codeOK, nil
	}
	found, known := codeOf(err)
	if public := engine.PublicError(err); public != nil {
		c.conn.server.opts.Logger.Error("Kafka request failed because of unusable data", slog.String("api", c.name()),
			slog.Any("error", err))
		return found, text(public.Error())
	}
	if known {
		return found, text(err.Error())
	}
	if errors.Is(err, context.Canceled) && c.conn.hasEnded() {
		c.conn.server.opts.Logger.Debug("Kafka request canceled: its connection has ended",
			slog.String("api", c.name()))
		return codeNotAvailable, text("connection has ended")
	}
	c.conn.server.opts.Logger.Error("Kafka request failed", slog.String("api", c.name()), slog.Any("error", err))
	return codeUnknown, text("internal error; see the server's log for the cause")
}

// codeOf is errorResponse without the text.
func (c *call) codeOf(err error) code {
	found, _ := c.errorResponse(err)
	return found
}
