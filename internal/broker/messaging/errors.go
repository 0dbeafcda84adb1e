package messaging

import (
	"freshet/internal/base/errs"
	"freshet/internal/storage/engine"
)

// Errors of the broker in addition to the engine's; compare them with errors.Is. Package
// messagingtest lists them all for the tests of the surfaces.
var (
	ErrNoTenant        = errs.New(errs.NotFound, "tenant does not exist")
	ErrTenantExists    = errs.New(errs.Conflict, "tenant exists already")
	ErrTenantBusy      = errs.New(errs.Conflict, "tenant still has namespaces")
	ErrNoNamespace     = errs.New(errs.NotFound, "namespace does not exist")
	ErrNamespaceExists = errs.New(errs.Conflict, "namespace exists already")
	ErrNamespaceBusy   = errs.New(errs.Conflict, "namespace still has topics")
	ErrTopicBusy       = errs.New(errs.Precondition, "topic has active consumers")
	ErrWrongKind       = errs.New(errs.Conflict, "call is not for this kind of topic")
	ErrPartitioned     = errs.New(errs.Precondition, "call is not allowed on a partitioned topic; name one partition")
	ErrPartitionName   = errs.New(errs.Conflict,
		"topic name ends in -partition-<number>, which only partitions of a topic may; choose another name")
	ErrDottedName = errs.New(errs.Conflict, "topic name begins with the name of a namespace")
	ErrShadows    = errs.New(errs.Conflict, "names of existing topics begin with the name of the new namespace, and "+
		"Kafka clients would no longer reach them; choose another name, or delete these topics first")
	ErrNoAutoCreation = errs.New(errs.Precondition, "topic does not exist and cannot be auto-created")
	ErrTopicLimit     = errs.New(errs.Precondition,
		"limit of tenants, namespaces, topics or subscriptions is reached; delete some or raise the limit")

	ErrPartitionCount = errs.New(errs.Invalid, "number of partitions is out of range")

	ErrSubscriptionBusy = errs.New(errs.Precondition, "subscription has active consumers")
	ErrNoPosition       = errs.New(errs.Precondition, "position is not in this topic")

	ErrNoSchema           = errs.New(errs.NotFound, "schema does not exist")
	ErrIncompatibleSchema = errs.New(errs.Conflict, "schema is incompatible with an earlier version")
	ErrInvalidSchema      = errs.New(errs.Invalid, "schema definition is not valid")
	ErrSchemaUpdate       = errs.New(errs.Denied, "namespace allows only administrators to add schema versions")
	ErrPayload            = errs.New(errs.Invalid, "payload does not match the topic's schema")
	ErrSchemaPrefix       = errs.New(errs.Invalid,
		"record does not start with the id of a schema that is registered for its topic")

	ErrName       = errs.New(errs.Invalid, "name is not valid")
	ErrPolicy     = errs.New(errs.Invalid, "policy is not valid")
	ErrMessage    = errs.New(errs.Invalid, "message is not valid")
	ErrMessageID  = errs.New(errs.Invalid, "message id is not valid")
	ErrBatch      = errs.New(errs.TooLarge, "batch is too large")
	ErrTooMany    = errs.New(errs.Unavailable, "too many consumers are waiting; try again shortly")
	ErrNoDelay    = errs.New(errs.Invalid, "delayed delivery is switched off for this topic")
	ErrClosing    = errs.New(errs.Unavailable, "cluster is shutting down")
	ErrNoRegistry = errs.New(errs.Unavailable,
		"topic requires records with a registered schema id, but this cluster has no schema registry")
	ErrTooMuchData = errs.New(errs.TooLarge, "properties, permissions or schema text are too large")

	ErrConfig        = errs.New(errs.Invalid, "topic configuration is not valid")
	ErrTransaction   = errs.New(errs.Precondition, "transactions are not available on this cluster")
	ErrProducerEpoch = errs.New(errs.Conflict, "producer epoch is fenced by a newer producer with the same id")
	ErrProducerID    = errs.New(errs.Conflict,
		"producer id was not issued to this account by this cluster; create the producer again")
	ErrUnissuedEpoch = errs.New(errs.Conflict,
		"producer epoch was not issued to this account; create the producer again")
	ErrSequence = errs.New(errs.Conflict, "producer sequence number is out of order")

	ErrDamagedMessage = errs.New(errs.Unavailable, "stored message is damaged and cannot be delivered")
)

// Errors of the engine that the broker passes on with the same meaning.
var (
	ErrNoTopic            = engine.ErrNoTopic
	ErrTopicExists        = engine.ErrTopicExists
	ErrNoSubscription     = engine.ErrNoSubscription
	ErrSubscriptionExists = engine.ErrSubscriptionExists
	ErrForeignID          = engine.ErrForeignID
	ErrNoMessage          = engine.ErrNoMessage
	ErrLeaseEnded         = engine.ErrLeaseEnded
	ErrTooLarge           = engine.ErrTooLarge
)
