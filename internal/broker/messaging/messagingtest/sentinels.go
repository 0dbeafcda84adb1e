// Package messagingtest contains helpers for the tests of the surfaces over package messaging. It
// is not part of the binary.
package messagingtest

import (
	"freshet/internal/broker/messaging"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/statemachine"
)

// Sentinels returns every error that a call of the broker may return, so that a surface can test
// that it maps them all.
func Sentinels() []error {
	return []error{
		messaging.ErrNoTenant, messaging.ErrTenantExists, messaging.ErrTenantBusy, messaging.ErrNoNamespace,
		messaging.ErrNamespaceExists, messaging.ErrNamespaceBusy,
		messaging.ErrNoTopic, messaging.ErrTopicExists, messaging.ErrTopicBusy, messaging.ErrWrongKind,
		messaging.ErrPartitioned, messaging.ErrPartitionName, messaging.ErrDottedName,
		messaging.ErrShadows,
		messaging.ErrNoAutoCreation, messaging.ErrTopicLimit, messaging.ErrPartitionCount, messaging.ErrNoSubscription,
		messaging.ErrSubscriptionExists,
		messaging.ErrSubscriptionBusy, messaging.ErrNoPosition, messaging.ErrNoSchema, messaging.ErrIncompatibleSchema,
		messaging.ErrInvalidSchema,
		messaging.ErrSchemaUpdate, messaging.ErrPayload, messaging.ErrSchemaPrefix, messaging.ErrContract,
		messaging.ErrName,
		messaging.ErrPolicy, messaging.ErrMessage, messaging.ErrMessageID,
		messaging.ErrForeignID, messaging.ErrNoMessage, messaging.ErrLeaseEnded, messaging.ErrTooLarge,
		messaging.ErrBatch, messaging.ErrTooMany, messaging.ErrNoDelay, messaging.ErrClosing,
		messaging.ErrNoRegistry, messaging.ErrTooMuchData, messaging.ErrDamagedMessage,
		messaging.ErrConfig, messaging.ErrTransaction, messaging.ErrProducerEpoch, messaging.ErrSequence,
		messaging.ErrProducerID, messaging.ErrUnissuedEpoch,
		engine.ErrNoPartition, engine.ErrInvalid, engine.ErrTerminated, engine.ErrBacklogFull, engine.ErrDiskFull,
		engine.ErrBusy, engine.ErrNoSelector, engine.ErrConflict, engine.ErrCompacted, engine.ErrCorrupt,
		engine.ErrFailed, engine.ErrClosed, engine.ErrNewerFormat, engine.ErrNotOpen, engine.ErrOpening,
		engine.ErrNotOwner, engine.ErrNoOwner, engine.ErrLogLost, engine.ErrJournalLost,
		statemachine.ErrClosed, statemachine.ErrBroken, statemachine.ErrContended,
	}
}
