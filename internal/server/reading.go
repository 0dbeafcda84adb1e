package server

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"freshet/internal/broker/groups"
	"freshet/internal/dataplane"
)

// The statistics of a topic name the consumer groups that read it, each of which is
// coordinated by some member. The topic's owner asks all of them. Who may see the
// statistics was decided there.

const (
	readingPath = "/v1/reading"
	// readingTimeout is how long another member may take to answer.
	readingTimeout = time.Second
	maxReading     = 1 << 20 // bytes of a question
)

// readingQuestion is what a member is asked, readingAnswer what it coordinates of that.
type readingQuestion struct {
	Cluster string              `json:"cluster"` // uid
	Query   groups.ReadingQuery `json:"query"`
}

type readingAnswer struct {
	Journals []int                      `json:"journals"`
	Groups   map[string]*groups.Reading `json:"groups"`
}

// readingOf returns what finds the consumer groups that read a topic, on all members,
// and whether all could be asked; nil when this server is alone.
func (s *server) readingOf(
	c *dataplane.Cluster,
) func(context.Context, *groups.ReadingQuery) (map[string]*groups.Reading, bool, error) {
	if s.group == nil {
		return nil
	}
	return func(ctx context.Context, q *groups.ReadingQuery) (map[string]*groups.Reading, bool, error) {
		coordinator, err := s.groupsOf(c)
		if err != nil {
			return nil, false, err
		}
		ctx, cancel := context.WithTimeout(ctx, readingTimeout)
		defer cancel()
		live := s.group.members.Live()
		answers := make([]readingAnswer, len(live))
		var asked sync.WaitGroup
		for i := range live {
			if live[i].Name == s.cfg.Members.Self {
				continue
			}
			asked.Go(func() { answers[i] = s.readingAt(ctx, live[i].Name, &readingQuestion{c.UID, *q}) })
		}
		own := readingHere(coordinator, q)
		asked.Wait()
		list, journals := own.Groups, own.Journals
		for _, answer := range answers {
			journals = append(journals, answer.Journals...)
			for name, group := range answer.Groups {
				if list[name] == nil { // it may have moved meanwhile
					list[name] = group
				}
			}
		}
		slices.Sort(journals)
		return list, len(slices.Compact(journals)) == groups.JournalCount, nil
	}
}

// readingAt asks another member. An answer that cannot be read whole counts as none: its
// groups may be missing, and its journals would say that none are.
func (s *server) readingAt(ctx context.Context, member string, q *readingQuestion) (answer readingAnswer) {
	if err := s.group.network.Post(ctx, member, readingPath, q, &answer); err != nil {
		s.log.Debug("a member does not tell which consumer groups read a topic", "member", member, "error", err)
		return readingAnswer{}
	}
	return answer
}

// readingHere is what this member coordinates, with the journals that it had all the time.
func readingHere(coordinator *groups.Coordinator, q *groups.ReadingQuery) readingAnswer {
	before := coordinator.Journals()
	answer := readingAnswer{Groups: coordinator.Reading(q)}
	after := coordinator.Journals()
	answer.Journals = slices.DeleteFunc(before, func(i int) bool { return !slices.Contains(after, i) })
	return answer
}

// tellReading is what the other members call.
func (s *server) tellReading(w http.ResponseWriter, r *http.Request) {
	var q readingQuestion
	if err := json.NewDecoder(io.LimitReader(r.Body, maxReading)).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, c := range s.plane.Clusters() {
		if c.UID != q.Cluster {
			continue
		}
		coordinator, err := s.groupsOf(c)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(readingHere(coordinator, &q.Query)) // the caller may be gone
		return
	}
	http.Error(w, "there is no such cluster here", http.StatusNotFound)
}
