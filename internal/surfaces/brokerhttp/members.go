package brokerhttp

import (
	"context"
	"net/http"

	"freshet/internal/base/names"
	"freshet/internal/broker/groups"
	"freshet/internal/broker/history"
)

// Members is the ensemble that a cluster runs on. SingleServer implements it for a server
// that is not part of one.
type Members interface {
	// Owner returns the sender to the member that owns a topic. It is nil if this server
	// handles the call: it is the owner, the topic has no owner at the moment, or another
	// member has already forwarded the call.
	Owner(r *http.Request, topic names.Topic) Sender
	// Coordinator returns the sender to the member that coordinates a consumer group, like
	// Owner.
	Coordinator(r *http.Request, group groups.Key) Sender
	// Coordinators returns a sender to each other member that coordinates consumer groups,
	// or that the request was already forwarded. It fails while some groups have no
	// coordinator.
	Coordinators(r *http.Request) (others []Sender, forwarded bool, err error)
	// GroupsReading returns the consumer groups that read a topic, those of the local
	// coordinator and of all other members, and whether all members responded.
	GroupsReading(ctx context.Context, local *groups.Coordinator, q *groups.LagQuery) (
		list map[string]*groups.GroupLag, complete bool, err error)
	// AddHistory adds what the other members have recorded to the answer of this one, and
	// sets Incomplete if one of them does not respond.
	AddHistory(ctx context.Context, q *history.Query, answer *history.Answer)
}

// Sender forwards a request to another member and copies the response to the client.
// It returns an error if the member was not reached; then the request body is still
// unread and no response was written. It is an alias, so that implementations of Members
// need not import this package.
type Sender = func(w http.ResponseWriter, r *http.Request) error

// SingleServer implements Members for a single server, which handles every call itself.
type SingleServer struct{}

// Owner implements Members.
func (SingleServer) Owner(*http.Request, names.Topic) Sender { return nil }

// Coordinator implements Members.
func (SingleServer) Coordinator(*http.Request, groups.Key) Sender { return nil }

// Coordinators implements Members.
func (SingleServer) Coordinators(*http.Request) ([]Sender, bool, error) { return nil, false, nil }

// GroupsReading implements Members.
func (SingleServer) GroupsReading(_ context.Context, local *groups.Coordinator,
	q *groups.LagQuery,
) (map[string]*groups.GroupLag, bool, error) {
	return local.GroupLags(q), true, nil
}

// AddHistory implements Members.
func (SingleServer) AddHistory(context.Context, *history.Query, *history.Answer) {}
