package replicas

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"freshet/internal/base/retry"
)

const (
	searchTimeout = time.Minute
	callTimeout   = 2 * time.Second
	// electionTimeout is how long a replica may need to become the leader.
	electionTimeout = 10 * time.Second
	pollInterval    = 50 * time.Millisecond
)

var (
	// ErrAgreed means that a majority of the replicas was read, and none of them has a good record.
	ErrAgreed = errors.New("majority of the replicas has no record that verifies")
	// ErrUndecided means that the replicas that could be read have no good record, and are no majority.
	ErrUndecided = errors.New("replicas that can be read have no record that verifies, and the others do not respond")
)

// Search reads a record at the replicas of a stream until one is good. read reads it from the leader. It
// returns false if the leader's record is missing or does not verify, and an error if the leader could not
// be read, which ends the search.
//
// Search returns the servers whose records are not good, also with ErrAgreed or ErrUndecided. The replica
// with the good record is the leader then, and a server that lost its files fetches them from it.
func Search(ctx context.Context, js jetstream.JetStream, stream string,
	read func(ctx context.Context) (good bool, err error),
) (bad []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, searchTimeout)
	defer cancel()
	for {
		before, err := describe(ctx, js, stream)
		if err != nil {
			return bad, err
		}
		good, err := read(ctx)
		if err != nil || good {
			return bad, err
		}
		after, err := describe(ctx, js, stream)
		if err != nil {
			return bad, err
		}
		if before.Leader == "" || before.Leader != after.Leader {
			if err := retry.Sleep(ctx, pollInterval); err != nil {
				return bad, err
			}
			continue // an election: nobody knows whose record it was
		}
		if !slices.Contains(bad, after.Leader) {
			bad = append(bad, after.Leader)
		}
		next := candidate(after, bad)
		if next == "" {
			if 2*len(bad) > len(after.Replicas)+1 {
				return bad, ErrAgreed
			}
			return bad, ErrUndecided
		}
		if err := lead(ctx, js, stream, next); err != nil {
			return bad, err
		}
	}
}

// Check makes a server the leader of a stream and reads a record from it, like Search. It returns ErrUndecided
// for a server that is not current: what it lacks can still arrive.
func Check(ctx context.Context, js jetstream.JetStream, stream, server string,
	read func(ctx context.Context) (good bool, err error),
) (good bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, searchTimeout)
	defer cancel()
	now, err := describe(ctx, js, stream)
	if err != nil {
		return false, err
	}
	if now.Leader != server {
		current := func(r *jetstream.PeerInfo) bool { return r.Name == server && isCurrent(r) }
		if !slices.ContainsFunc(now.Replicas, current) {
			return false, ErrUndecided
		}
		if err := lead(ctx, js, stream, server); err != nil {
			return false, err
		}
		// The other one has a good record, and a server that lost its files fetches them from the leader.
		defer func() { _ = lead(ctx, js, stream, now.Leader) }()
	}
	good, err = read(ctx)
	if after, descErr := describe(ctx, js, stream); descErr != nil || after.Leader != server {
		return false, errors.Join(ErrUndecided, descErr)
	}
	return good, err
}

func isCurrent(r *jetstream.PeerInfo) bool { return r.Current && !r.Offline }

// candidate returns a replica that can become the leader and was not read yet; "" if there is none.
func candidate(cluster *jetstream.ClusterInfo, read []string) string {
	for _, r := range cluster.Replicas {
		if isCurrent(r) && !slices.Contains(read, r.Name) {
			return r.Name
		}
	}
	return ""
}

// describe returns the leader and the other replicas of a stream.
func describe(ctx context.Context, js jetstream.JetStream, stream string) (*jetstream.ClusterInfo, error) {
	var cluster *jetstream.ClusterInfo
	backoff := retry.Backoff{Min: pollInterval}
	ctx, cancel := context.WithTimeout(ctx, electionTimeout)
	defer cancel()
	err := retry.Do(ctx, backoff, func() (bool, error) {
		try, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		found, err := js.Stream(try, stream)
		if err != nil {
			return !errors.Is(err, jetstream.ErrStreamNotFound), err
		}
		// A single server has no cluster.
		cluster = cmp.Or(found.CachedInfo().Cluster, &jetstream.ClusterInfo{Leader: "the server"})
		return false, nil
	})
	if err != nil {
		return nil, fmt.Errorf("finding the replicas of stream %s: %w", stream, err)
	}
	return cluster, nil
}

// lead makes a replica the leader of a stream.
func lead(ctx context.Context, js jetstream.JetStream, stream, server string) error {
	request, err := json.Marshal(map[string]any{"placement": map[string]string{"preferred": server}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, electionTimeout)
	defer cancel()
	for {
		try, cancel := context.WithTimeout(ctx, callTimeout)
		// The outcome is visible in the description of the stream.
		_, err := js.Conn().RequestWithContext(try, "$JS.API.STREAM.LEADER.STEPDOWN."+stream, request)
		cancel()
		if now, descErr := describe(ctx, js, stream); descErr == nil && now.Leader == server {
			return nil
		}
		if retry.Sleep(ctx, pollInterval) != nil {
			return fmt.Errorf("%w: server %s did not become the leader of stream %s: %w", ErrUndecided, server, stream,
				cmp.Or(err, ctx.Err()))
		}
	}
}
