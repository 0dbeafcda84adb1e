package remote

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"freshet/internal/storage/engine"
)

// Shards looks up the shards that this member owns.
type Shards interface {
	// Owned returns the engine of a shard while this member owns it, and otherwise an
	// error and the owner that this member knows.
	Owned(cluster string, shard int) (engine.Engine, engine.Owner, error)
}

// Server serves the calls of other members. It does not authenticate them: the listener
// must accept members only.
type Server struct {
	shards Shards
	log    *slog.Logger
}

// NewServer returns a handler for Path.
func NewServer(shards Shards, log *slog.Logger) *Server { return &Server{shards: shards, log: log} }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req request
	if err := readFrame(r.Body, &req); err != nil {
		http.Error(w, "decoding the request of another member: "+err.Error(), http.StatusBadRequest)
		return
	}
	ctx := r.Context()
	if req.Timeout != 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, req.Timeout)
		defer cancel()
	}
	if req.Frees {
		ctx = engine.AllowWhenDiskFull(ctx)
	}
	result := s.handle(ctx, &req)
	frame, err := encode(result)
	if err != nil {
		s.releaseLeases(ctx, &req, result.Deliveries)
		result = &reply{Failure: newWireError(err)}
		if frame, err = encode(result); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	_, err = w.Write(frame)
	if err == nil {
		err = http.NewResponseController(w).Flush()
	}
	if len(result.Deliveries) == 0 {
		return
	}
	if err == nil {
		err = awaitConfirmation(w, r)
	}
	if err != nil {
		s.releaseLeases(ctx, &req, result.Deliveries)
	}
}

// awaitConfirmation waits until the caller confirms that it has the messages.
func awaitConfirmation(w http.ResponseWriter, r *http.Request) error {
	// Not every ResponseWriter supports deadlines; then the wait ends when the caller disconnects.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(confirmTimeout))
	if n, err := r.Body.Read(make([]byte, 1)); n == 0 {
		return fmt.Errorf("waiting for the caller's confirmation: %w", err)
	}
	return nil
}

// releaseLeases releases the leases of messages that did not arrive.
func (s *Server) releaseLeases(ctx context.Context, req *request, deliveries []engine.Delivery) {
	if len(deliveries) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmTimeout)
	defer cancel()
	owned, _, err := s.shards.Owned(req.Cluster, req.Shard)
	if err != nil {
		return // the leases ended with the ownership
	}
	list := make([]engine.Settlement, len(deliveries))
	for i := range deliveries {
		d := &deliveries[i]
		list[i] = engine.Settlement{ID: d.ID, Action: engine.Release, Delivery: d.Redeliveries + 1}
	}
	if err := owned.Settle(ctx, req.Topic, req.Name, list); err != nil {
		s.log.WarnContext(ctx, "releasing messages that did not reach another member failed; they are delivered "+
			"again when their leases expire",
			slog.Uint64("topic", uint64(req.Topic)), slog.Any("error", err))
	}
}

// handle executes a request.
func (s *Server) handle(ctx context.Context, r *request) *reply {
	owned, owner, err := s.shards.Owned(r.Cluster, r.Shard)
	if err == nil && r.Epoch > owner.Epoch {
		err = engine.ErrNotOwner // the caller knows a newer owner
	}
	if err != nil {
		f := newWireError(err)
		f.Refused, f.Owner = true, owner
		return &reply{Failure: f}
	}
	a := &reply{}
	if err := a.execute(ctx, owned, r); err != nil {
		return &reply{Failure: newWireError(err)}
	}
	return a
}

func (a *reply) execute(ctx context.Context, e engine.Engine, r *request) (err error) {
	switch r.Method {
	case createTopic:
		return e.CreateTopic(ctx, r.Topic, r.TopicConfig)
	case configureTopic:
		return e.ConfigureTopic(ctx, r.Topic, r.TopicConfig)
	case deleteTopic:
		return e.DeleteTopic(ctx, r.Topic)
	case describeTopic:
		a.Stats, err = e.DescribeTopic(ctx, r.Topic)
	case listTopics:
		a.IDs, err = e.ListTopics(ctx, r.Topic, min(r.Limit, pageItems))
	case appendMessages:
		a.Appended, err = e.Append(ctx, r.Topic, r.Partition, r.Messages)
	case readMessages:
		r.Read.Wait = min(r.Read.Wait, maxWait)
		a.Records, err = e.Read(ctx, r.Topic, r.Read)
	case createSubscription:
		return e.CreateSubscription(ctx, r.Topic, r.Name, r.Subscription, r.Position)
	case configureSubscription:
		return e.ConfigureSubscription(ctx, r.Topic, r.Name, r.Subscription)
	case deleteSubscription:
		return e.DeleteSubscription(ctx, r.Topic, r.Name)
	case resetSubscription:
		return e.ResetSubscription(ctx, r.Topic, r.Name, r.Position)
	case receive:
		r.Receive.Wait = min(r.Receive.Wait, maxWait)
		a.Deliveries, err = e.Receive(ctx, r.Topic, r.Name, r.Receive)
	case settle:
		return e.Settle(ctx, r.Topic, r.Name, r.Settlements)
	default:
		return a.executeBatches(ctx, e, r)
	}
	return err
}

func (a *reply) executeBatches(ctx context.Context, e engine.Engine, r *request) (err error) {
	switch r.Method {
	case readBatches:
		return a.readPage(ctx, e, r)
	case grown:
		waiting, cancel := context.WithTimeout(ctx, maxWait)
		defer cancel()
		err = e.WaitEntries(waiting, r.Marks)
		if err != nil && ctx.Err() == nil && waiting.Err() != nil {
			a.More, err = true, nil // the caller repeats the request
		}
	case find:
		a.Found, err = e.FindByTime(ctx, r.Topic, r.Partition, r.Millis)
	case findNewest:
		a.Found, err = e.FindNewest(ctx, r.Topic, r.Partition)
	case sides:
		err = e.Attributes(ctx, r.Topic, r.Partition, r.Key, func(s engine.Attribute) error {
			a.Sides = append(a.Sides, engine.Attribute{Key: slices.Clone(s.Key), Value: slices.Clone(s.Value)})
			return nil
		})
	case trim:
		a.Entry, err = e.Trim(ctx, r.Topic, r.Partition, r.Entry)
	case totals:
		a.Totals = e.Totals()
	default:
		err = engine.ErrNewerFormat
	}
	return err
}

// readPage reads batches up to the size limit of a response.
func (a *reply) readPage(ctx context.Context, e engine.Engine, r *request) (err error) {
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
