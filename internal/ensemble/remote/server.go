package remote

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
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
	ctx := withCaller(r)
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
	operation, ok := operations[r.Method]
	if !ok {
		return &reply{Failure: newWireError(engine.ErrNewerFormat)}
	}
	a := &reply{}
	if err := operation.execute(execution{r, ctx, owned}, a); err != nil {
		return &reply{Failure: newWireError(err)}
	}
	return a
}
