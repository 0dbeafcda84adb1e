package ensemble

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"freshet/internal/broker/history"
)

// Every member records the history of what it owns. The owner of a topic changes, so the history of
// a topic is in parts on several members. The member that serves a request asks all others and adds up
// their answers. It has authorized the caller.

// HistoryPath is the path on the internal listener for these queries.
const HistoryPath = "/v1/history"

const (
	// historyTimeout is the timeout for the responses of the other members.
	historyTimeout = 2 * time.Second
	maxHistory     = 64 << 10 // bytes of a query
)

// AddHistory adds the answers of the other members. The answer is incomplete if one of them does not respond.
func (o Routes) AddHistory(ctx context.Context, q *history.Query, answer *history.Answer) {
	o.router.addHistory(ctx, q, answer)
}

func (r *Router) addHistory(ctx context.Context, q *history.Query, answer *history.Answer) {
	ctx, cancel := context.WithTimeout(ctx, historyTimeout)
	defer cancel()
	live := make(map[string]bool)
	for _, record := range r.Members.Live() {
		live[record.Name] = true
	}
	names := r.Members.Names()
	others := make([]*history.Answer, len(names))
	var asked sync.WaitGroup
	for i, name := range names {
		switch {
		case name == r.Members.Self():
			continue
		case !live[name]: // connecting to it would use up the timeout
			answer.Incomplete = true
			continue
		}
		asked.Go(func() { others[i] = r.historyOn(ctx, name, q) })
	}
	asked.Wait()
	for i, other := range others {
		switch {
		case names[i] == r.Members.Self() || !live[names[i]]:
		case other == nil || answer.Add(q.Kind, other) != nil:
			answer.Incomplete = true
		}
	}
}

// historyOn queries another member; nil if it does not answer.
func (r *Router) historyOn(ctx context.Context, member string, q *history.Query) *history.Answer {
	var answer history.Answer
	if err := r.Members.Post(ctx, member, HistoryPath, q, &answer); err != nil {
		r.Logger.Debug("member did not return its part of the history of statistics; leaving it out",
			slog.String("member", member), slog.Any("error", err))
		return nil
	}
	return &answer
}

// HistoryHandler handles the queries of other members, at HistoryPath.
func (r *Router) HistoryHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var q history.Query
		if err := json.NewDecoder(io.LimitReader(request.Body, maxHistory)).Decode(&q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if !q.Valid() {
			http.Error(w, "this member does not know the range or the kind of the history", http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(r.History.Answer(&q)) // fails only if the caller disconnected
	})
}
