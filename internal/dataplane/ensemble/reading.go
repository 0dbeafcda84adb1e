package ensemble

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"freshet/internal/broker/groups"
)

// The statistics of a topic contain the consumer groups that read it. Each group has a
// coordinator on one of the members, so the topic's owner queries all of them. The owner has
// authorized the caller.

// ReadingPath is the path on the internal listener for these queries.
const ReadingPath = "/v1/reading"

const (
	// readingTimeout is the timeout for the responses of the other members.
	readingTimeout = time.Second
	maxReading     = 1 << 20 // bytes of a query
)

// readingRequest is the query to a member, readingResponse the part that it coordinates.
type readingRequest struct {
	Cluster string          `json:"cluster"` // uid
	Query   groups.LagQuery `json:"query"`
}

type readingResponse struct {
	Journals []int                       `json:"journals"`
	Groups   map[string]*groups.GroupLag `json:"groups"`
}

// GroupsReading returns the consumer groups that read a topic on all members, and whether all
// journals of consumer groups responded. local is this member's coordinator.
func (o Routes) GroupsReading(ctx context.Context, local *groups.Coordinator,
	q *groups.LagQuery,
) (list map[string]*groups.GroupLag, complete bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, readingTimeout)
	defer cancel()
	live := o.router.Members.Live()
	answers := make([]readingResponse, len(live))
	var asked sync.WaitGroup
	for i := range live {
		if live[i].Name == o.router.Members.Self() {
			continue
		}
		asked.Go(func() {
			answers[i] = o.router.readingOn(ctx, live[i].Name, &readingRequest{o.cluster.UID, *q})
		})
	}
	own := ownReading(local, q)
	asked.Wait()
	list, journals := own.Groups, own.Journals
	for _, answer := range answers {
		journals = append(journals, answer.Journals...)
		for name, group := range answer.Groups {
			if list[name] == nil { // it may have moved between members
				list[name] = group
			}
		}
	}
	slices.Sort(journals)
	return list, len(slices.Compact(journals)) == groups.JournalCount, nil
}

// readingOn queries another member. It discards an incomplete response: the response could
// list a journal without its groups.
func (r *Router) readingOn(ctx context.Context, member string, q *readingRequest) (answer readingResponse) {
	if err := r.Members.Post(ctx, member, ReadingPath, q, &answer); err != nil {
		r.Logger.Debug("member did not return the consumer groups of a topic; leaving them out",
			slog.String("member", member), slog.Any("error", err))
		return readingResponse{}
	}
	return answer
}

// ownReading returns the groups that this member coordinates, and the journals that it had
// before and after reading them.
func ownReading(coordinator *groups.Coordinator, q *groups.LagQuery) readingResponse {
	before := coordinator.Journals()
	answer := readingResponse{Groups: coordinator.GroupLags(q)}
	after := coordinator.Journals()
	answer.Journals = slices.DeleteFunc(before, func(i int) bool { return !slices.Contains(after, i) })
	return answer
}

// ReadingHandler handles the queries of other members, at ReadingPath.
func (r *Router) ReadingHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var q readingRequest
		if err := json.NewDecoder(io.LimitReader(request.Body, maxReading)).Decode(&q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for _, c := range r.Local.Clusters() {
			if c.UID != q.Cluster {
				continue
			}
			coordinator, err := r.Local.Groups(c)
			if err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			_ = json.NewEncoder(w).Encode(ownReading(coordinator, &q.Query)) // fails only if the caller disconnected
			return
		}
		http.Error(w, "cluster does not exist on this member", http.StatusNotFound)
	})
}
