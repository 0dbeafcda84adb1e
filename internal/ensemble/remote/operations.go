package remote

import (
	"context"
	"slices"

	"freshet/internal/storage/engine"
)

// operation is one method of an engine, for both ends: the caller sends its number and takes
// the result from the reply, and the owner executes it and puts the result there.
type operation[T any] struct {
	method method
	result func(*reply) *T // where the result is in a reply
	do     func(x execution, a *reply) error
}

// execution is a request that the owner executes on the shard's engine.
type execution struct {
	*request
	ctx context.Context
	e   engine.Engine
}

// call sends a request for the operation and returns the result.
func (o operation[T]) call(ctx context.Context, s *Shard, r request) (T, error) {
	r.Method = o.method
	a, err := s.call(ctx, r)
	if err != nil {
		var none T
		return none, err
	}
	return *o.result(a), nil
}

// query returns an operation with a result of one value.
func query[T any](m method, result func(*reply) *T, do func(execution) (T, error)) operation[T] {
	return operation[T]{m, result, func(x execution, a *reply) (err error) {
		*result(a), err = do(x)
		return err
	}}
}

// command returns an operation without a result.
func command(m method, do func(execution) error) operation[reply] {
	return operation[reply]{m, whole, func(x execution, _ *reply) error { return do(x) }}
}

// whole is the result of an operation whose result is several fields of the reply, or none.
func whole(a *reply) *reply { return a }

// executable is an operation of any result as the owner sees it.
type executable interface {
	number() method
	execute(x execution, a *reply) error
}

func (o operation[T]) number() method                      { return o.method }
func (o operation[T]) execute(x execution, a *reply) error { return o.do(x, a) }

// operations are all operations by their numbers. The numbers are part of the wire format
// (wire.go): a number is never used again for another operation.
var operations = byNumber(createTopic, configureTopic, deleteTopic, describeTopic, listTopics, appendMessages,
	readMessages, createSubscription, configureSubscription, deleteSubscription, resetSubscription, receive, settle,
	readBatches, waitEntries, findByTime, findNewest, attributes, trim, totals)

func byNumber(all ...executable) map[method]executable {
	m := make(map[method]executable, len(all))
	for _, o := range all {
		m[o.number()] = o
	}
	return m
}

var (
	createTopic    = command(1, func(x execution) error { return x.e.CreateTopic(x.ctx, x.Topic, x.TopicConfig) })
	configureTopic = command(2, func(x execution) error { return x.e.ConfigureTopic(x.ctx, x.Topic, x.TopicConfig) })
	deleteTopic    = command(3, func(x execution) error { return x.e.DeleteTopic(x.ctx, x.Topic) })
	describeTopic  = query(4, func(a *reply) *engine.TopicStats { return &a.Stats },
		func(x execution) (engine.TopicStats, error) { return x.e.DescribeTopic(x.ctx, x.Topic) })
	listTopics = query(5, func(a *reply) *[]engine.TopicID { return &a.IDs },
		func(x execution) ([]engine.TopicID, error) {
			return x.e.ListTopics(x.ctx, x.Topic, min(x.Limit, pageItems))
		})
	appendMessages = query(6, func(a *reply) *[]engine.Appended { return &a.Appended },
		func(x execution) ([]engine.Appended, error) {
			return x.e.Append(x.ctx, x.Topic, x.Partition, x.Messages)
		})
	readMessages = query(7, func(a *reply) *[]engine.Record { return &a.Records },
		func(x execution) ([]engine.Record, error) {
			x.Read.Wait = min(x.Read.Wait, maxWait)
			return x.e.Read(x.ctx, x.Topic, x.Read)
		})
	createSubscription = command(8, func(x execution) error {
		return x.e.CreateSubscription(x.ctx, x.Topic, x.Name, x.Subscription, x.Position)
	})
	configureSubscription = command(9, func(x execution) error {
		return x.e.ConfigureSubscription(x.ctx, x.Topic, x.Name, x.Subscription)
	})
	deleteSubscription = command(10, func(x execution) error {
		return x.e.DeleteSubscription(x.ctx, x.Topic, x.Name)
	})
	resetSubscription = command(11, func(x execution) error {
		return x.e.ResetSubscription(x.ctx, x.Topic, x.Name, x.Position)
	})
	receive = query(12, func(a *reply) *[]engine.Delivery { return &a.Deliveries },
		func(x execution) ([]engine.Delivery, error) {
			x.Receive.Wait = min(x.Receive.Wait, maxWait)
			return x.e.Receive(x.ctx, x.Topic, x.Name, x.Receive)
		})
	settle      = command(13, func(x execution) error { return x.e.Settle(x.ctx, x.Topic, x.Name, x.Settlements) })
	readBatches = operation[reply]{14, whole, readPage}
	waitEntries = query(15, func(a *reply) *bool { return &a.More }, waitForEntries)
	findByTime  = query(16, func(a *reply) *engine.FindResult { return &a.Found },
		func(x execution) (engine.FindResult, error) {
			return x.e.FindByTime(x.ctx, x.Topic, x.Partition, x.Millis)
		})
	findNewest = query(17, func(a *reply) *engine.FindResult { return &a.Found },
		func(x execution) (engine.FindResult, error) { return x.e.FindNewest(x.ctx, x.Topic, x.Partition) })
	attributes = query(18, func(a *reply) *[]engine.Attribute { return &a.Sides }, listAttributes)
	trim       = query(19, func(a *reply) *uint64 { return &a.Entry },
		func(x execution) (uint64, error) { return x.e.Trim(x.ctx, x.Topic, x.Partition, x.Entry) })
	totals = query(20, func(a *reply) *engine.Totals { return &a.Totals },
		func(x execution) (engine.Totals, error) { return x.e.Totals(), nil })
)

// readPage reads batches up to the size limit of a response.
func readPage(x execution, a *reply) (err error) {
	if x.Limit == 0 {
		a.Extent, err = x.e.ReadBatches(x.ctx, x.Topic, x.Partition, x.Entry, nil)
		return err
	}
	size := 0
	a.Extent, err = x.e.ReadBatches(x.ctx, x.Topic, x.Partition, x.Entry, func(s *engine.StoredValue) (bool, error) {
		copied := *s
		copied.Run.Body = slices.Clone(s.Run.Body)
		a.Stored = append(a.Stored, copied)
		size += len(copied.Run.Body) + len(copied.Record.Payload)
		a.More = size >= pageBytes || len(a.Stored) >= min(x.Limit, pageItems)
		return !a.More, nil
	})
	return err
}

// waitForEntries waits for entries at most for maxWait. It returns true when the caller has
// to repeat the request.
func waitForEntries(x execution) (again bool, err error) {
	waiting, cancel := context.WithTimeout(x.ctx, maxWait)
	defer cancel()
	err = x.e.WaitEntries(waiting, x.Marks)
	if err != nil && x.ctx.Err() == nil && waiting.Err() != nil {
		return true, nil
	}
	return false, err
}

func listAttributes(x execution) (all []engine.Attribute, err error) {
	err = x.e.Attributes(x.ctx, x.Topic, x.Partition, x.Key, func(s engine.Attribute) error {
		all = append(all, engine.Attribute{Key: slices.Clone(s.Key), Value: slices.Clone(s.Value)})
		return nil
	})
	return all, err
}
