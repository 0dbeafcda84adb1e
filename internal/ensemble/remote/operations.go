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
	do     func(ctx context.Context, e engine.Engine, r *request, a *reply) error
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
func query[T any](m method, result func(*reply) *T,
	do func(ctx context.Context, e engine.Engine, r *request) (T, error),
) operation[T] {
	return operation[T]{m, result, func(ctx context.Context, e engine.Engine, r *request, a *reply) (err error) {
		*result(a), err = do(ctx, e, r)
		return err
	}}
}

// command returns an operation without a result.
func command(m method, do func(ctx context.Context, e engine.Engine, r *request) error) operation[reply] {
	return operation[reply]{m, whole, func(ctx context.Context, e engine.Engine, r *request, _ *reply) error {
		return do(ctx, e, r)
	}}
}

// whole is the result of an operation whose result is several fields of the reply, or none.
func whole(a *reply) *reply { return a }

// executable is an operation of any result as the owner sees it.
type executable interface {
	number() method
	execute(ctx context.Context, e engine.Engine, r *request, a *reply) error
}

func (o operation[T]) number() method { return o.method }

func (o operation[T]) execute(ctx context.Context, e engine.Engine, r *request, a *reply) error {
	return o.do(ctx, e, r, a)
}

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
	createTopic = command(1, func(ctx context.Context, e engine.Engine, r *request) error {
		return e.CreateTopic(ctx, r.Topic, r.TopicConfig)
	})
	configureTopic = command(2, func(ctx context.Context, e engine.Engine, r *request) error {
		return e.ConfigureTopic(ctx, r.Topic, r.TopicConfig)
	})
	deleteTopic = command(3, func(ctx context.Context, e engine.Engine, r *request) error {
		return e.DeleteTopic(ctx, r.Topic)
	})
	describeTopic = query(4, func(a *reply) *engine.TopicStats { return &a.Stats },
		func(ctx context.Context, e engine.Engine, r *request) (engine.TopicStats, error) {
			return e.DescribeTopic(ctx, r.Topic)
		})
	listTopics = query(5, func(a *reply) *[]engine.TopicID { return &a.IDs },
		func(ctx context.Context, e engine.Engine, r *request) ([]engine.TopicID, error) {
			return e.ListTopics(ctx, r.Topic, min(r.Limit, pageItems))
		})
	appendMessages = query(6, func(a *reply) *[]engine.Appended { return &a.Appended },
		func(ctx context.Context, e engine.Engine, r *request) ([]engine.Appended, error) {
			return e.Append(ctx, r.Topic, r.Partition, r.Messages)
		})
	readMessages = query(7, func(a *reply) *[]engine.Record { return &a.Records },
		func(ctx context.Context, e engine.Engine, r *request) ([]engine.Record, error) {
			r.Read.Wait = min(r.Read.Wait, maxWait)
			return e.Read(ctx, r.Topic, r.Read)
		})
	createSubscription = command(8, func(ctx context.Context, e engine.Engine, r *request) error {
		return e.CreateSubscription(ctx, r.Topic, r.Name, r.Subscription, r.Position)
	})
	configureSubscription = command(9, func(ctx context.Context, e engine.Engine, r *request) error {
		return e.ConfigureSubscription(ctx, r.Topic, r.Name, r.Subscription)
	})
	deleteSubscription = command(10, func(ctx context.Context, e engine.Engine, r *request) error {
		return e.DeleteSubscription(ctx, r.Topic, r.Name)
	})
	resetSubscription = command(11, func(ctx context.Context, e engine.Engine, r *request) error {
		return e.ResetSubscription(ctx, r.Topic, r.Name, r.Position)
	})
	receive = query(12, func(a *reply) *[]engine.Delivery { return &a.Deliveries },
		func(ctx context.Context, e engine.Engine, r *request) ([]engine.Delivery, error) {
			r.Receive.Wait = min(r.Receive.Wait, maxWait)
			return e.Receive(ctx, r.Topic, r.Name, r.Receive)
		})
	settle = command(13, func(ctx context.Context, e engine.Engine, r *request) error {
		return e.Settle(ctx, r.Topic, r.Name, r.Settlements)
	})
	readBatches = operation[reply]{14, whole, readPage}
	waitEntries = query(15, func(a *reply) *bool { return &a.More }, waitForEntries)
	findByTime  = query(16, func(a *reply) *engine.FindResult { return &a.Found },
		func(ctx context.Context, e engine.Engine, r *request) (engine.FindResult, error) {
			return e.FindByTime(ctx, r.Topic, r.Partition, r.Millis)
		})
	findNewest = query(17, func(a *reply) *engine.FindResult { return &a.Found },
		func(ctx context.Context, e engine.Engine, r *request) (engine.FindResult, error) {
			return e.FindNewest(ctx, r.Topic, r.Partition)
		})
	attributes = query(18, func(a *reply) *[]engine.Attribute { return &a.Sides }, listAttributes)
	trim       = query(19, func(a *reply) *uint64 { return &a.Entry },
		func(ctx context.Context, e engine.Engine, r *request) (uint64, error) {
			return e.Trim(ctx, r.Topic, r.Partition, r.Entry)
		})
	totals = query(20, func(a *reply) *engine.Totals { return &a.Totals },
		func(_ context.Context, e engine.Engine, _ *request) (engine.Totals, error) { return e.Totals(), nil })
)

// readPage reads batches up to the size limit of a response.
func readPage(ctx context.Context, e engine.Engine, r *request, a *reply) (err error) {
	if r.Limit == 0 {
		a.Extent, err = e.ReadBatches(ctx, r.Topic, r.Partition, r.Entry, nil)
		return err
	}
	size := 0
	a.Extent, err = e.ReadBatches(ctx, r.Topic, r.Partition, r.Entry, func(s *engine.StoredValue) (bool, error) {
		copied := *s
		copied.Run.Body = slices.Clone(s.Run.Body)
		a.Stored = append(a.Stored, copied)
		size += len(copied.Run.Body) + len(copied.Record.Payload)
		a.More = size >= pageBytes || len(a.Stored) >= min(r.Limit, pageItems)
		return !a.More, nil
	})
	return err
}

// waitForEntries waits for entries at most for maxWait. It returns true when the caller has
// to repeat the request.
func waitForEntries(ctx context.Context, e engine.Engine, r *request) (again bool, err error) {
	waiting, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	err = e.WaitEntries(waiting, r.Marks)
	if err != nil && ctx.Err() == nil && waiting.Err() != nil {
		return true, nil
	}
	return false, err
}

func listAttributes(ctx context.Context, e engine.Engine, r *request) (all []engine.Attribute, err error) {
	err = e.Attributes(ctx, r.Topic, r.Partition, r.Key, func(s engine.Attribute) error {
		all = append(all, engine.Attribute{Key: slices.Clone(s.Key), Value: slices.Clone(s.Value)})
		return nil
	})
	return all, err
}
