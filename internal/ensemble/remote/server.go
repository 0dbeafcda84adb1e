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
	var asked request
	if err := readFrame(r.Body, &asked); err != nil {
		http.Error(w, "decoding the request of another member: "+err.Error(), http.StatusBadRequest)
		return
	}
	ctx := r.Context()
	if asked.Timeout != 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, asked.Timeout)
		defer cancel()
	}
	if asked.Frees {
		ctx = engine.Freeing(ctx)
	}
	given := s.answer(ctx, &asked)
	frame, err := encode(given)
	if err != nil {
		s.giveBack(ctx, &asked, given.Deliveries)
		given = &answer{Failure: newFailure(err)}
		if frame, err = encode(given); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	_, err = w.Write(frame)
	if err == nil {
		err = http.NewResponseController(w).Flush()
	}
	if len(given.Deliveries) == 0 {
		return
	}
	if err == nil {
		err = confirmed(w, r)
	}
	if err != nil {
		s.giveBack(ctx, &asked, given.Deliveries)
	}
}

// confirmed waits until the caller confirms that it has the messages.
func confirmed(w http.ResponseWriter, r *http.Request) error {
	// Not every ResponseWriter supports deadlines; then the wait ends when the caller disconnects.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(confirm))
	if n, err := r.Body.Read(make([]byte, 1)); n == 0 {
		return fmt.Errorf("waiting for the caller's confirmation: %w", err)
	}
	return nil
}

// giveBack releases the leases of messages that did not arrive.
func (s *Server) giveBack(ctx context.Context, asked *request, deliveries []engine.Delivery) {
	if len(deliveries) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirm)
	defer cancel()
	owned, _, err := s.shards.Owned(asked.Cluster, asked.Shard)
	if err != nil {
		return // the leases ended with the ownership
	}
	list := make([]engine.Settlement, len(deliveries))
	for i := range deliveries {
		d := &deliveries[i]
		list[i] = engine.Settlement{ID: d.ID, Action: engine.Release, Delivery: d.Redeliveries + 1}
	}
	if err := owned.Settle(ctx, asked.Topic, asked.Name, list); err != nil {
		s.log.WarnContext(ctx, "releasing messages that did not reach another member failed; they are delivered "+
			"again when their leases expire",
			slog.Uint64("topic", uint64(asked.Topic)), slog.Any("error", err))
	}
}

// answer executes a request.
func (s *Server) answer(ctx context.Context, r *request) *answer {
	owned, owner, err := s.shards.Owned(r.Cluster, r.Shard)
	if err == nil && r.Epoch > owner.Epoch {
		err = engine.ErrNotOwner // the caller knows a newer owner
	}
	if err != nil {
		f := newFailure(err)
		f.Refused, f.Owner = true, owner
		return &answer{Failure: f}
	}
	a := &answer{}
	if err := a.fill(ctx, owned, r); err != nil {
		return &answer{Failure: newFailure(err)}
	}
	return a
}

func (a *answer) fill(ctx context.Context, e engine.Engine, r *request) (err error) {
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
		return a.fillRuns(ctx, e, r)
	}
	return err
}

func (a *answer) fillRuns(ctx context.Context, e engine.Engine, r *request) (err error) {
	switch r.Method {
	case readRuns:
		return a.fillPage(ctx, e, r)
	case grown:
		waiting, cancel := context.WithTimeout(ctx, maxWait)
		defer cancel()
		err = e.Grown(waiting, r.Marks)
		if err != nil && ctx.Err() == nil && waiting.Err() != nil {
			a.More, err = true, nil // the caller repeats the request
		}
	case find:
		a.Found, err = e.Find(ctx, r.Topic, r.Partition, r.Millis)
	case findNewest:
		a.Found, err = e.FindNewest(ctx, r.Topic, r.Partition)
	case sides:
		err = e.Sides(ctx, r.Topic, r.Partition, r.Key, func(s engine.Side) error {
			a.Sides = append(a.Sides, engine.Side{Key: slices.Clone(s.Key), Value: slices.Clone(s.Value)})
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

// fillPage reads batches up to the size limit of a response.
func (a *answer) fillPage(ctx context.Context, e engine.Engine, r *request) (err error) {
	if r.Limit == 0 {
		a.Extent, err = e.ReadRuns(ctx, r.Topic, r.Partition, r.Entry, nil)
		return err
	}
	size := 0
	a.Extent, err = e.ReadRuns(ctx, r.Topic, r.Partition, r.Entry, func(s *engine.Stored) (bool, error) {
		kept := *s
		kept.Run.Body = slices.Clone(s.Run.Body)
		a.Stored = append(a.Stored, kept)
		size += len(kept.Run.Body) + len(kept.Record.Payload)
		a.More = size >= pageRuns || len(a.Stored) >= min(r.Limit, pageItems)
		return !a.More, nil
	})
	return err
}
