package ensemble

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/base/lograte"
	"freshet/internal/base/retry"
	"freshet/internal/dataplane"
	"freshet/internal/dataplane/provision"
)

// Plane runs the clusters of a whole ensemble. The elected member calls Provision and
// Destroy, which store what should run; every member runs it (Follow).
type Plane struct {
	*dataplane.Plane
	ensemble *Ensemble
	failures *lograte.Limiter // logs once why this member could not open a cluster
}

// NewPlane wraps the plane of a member for its ensemble.
func NewPlane(local *dataplane.Plane, g *Ensemble) *Plane {
	return &Plane{Plane: local, ensemble: g, failures: lograte.New(lograte.Policy{Keys: 10_000})}
}

const (
	retryInterval    = 500 * time.Millisecond
	maxResponseBytes = 1 << 20
	releaseTimeout   = 15 * time.Second // timeout for another member to close a cluster
)

func (p *Plane) specKey() string { return p.ensemble.key("clusters/") }

// Provision stores that a cluster should run, opens it on this member and waits until all
// its shards have owners.
func (p *Plane) Provision(ctx context.Context, spec provision.Spec, report func(provision.Part)) error {
	text, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("encoding the spec of the cluster: %w", err)
	}
	key := p.specKey() + spec.UID
	_, err = p.ensemble.opts.Etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.Value(key), "=", string(text))).
		Else(clientv3.OpPut(key, string(text))).
		Commit()
	if err != nil {
		return fmt.Errorf("storing the spec of the cluster in etcd: %w", err)
	}
	return p.ensemble.withLostJournals(ctx, spec, p.Plane.Provision(ctx, spec, report))
}

// Destroy removes a cluster from all members, and the data that they share.
func (p *Plane) Destroy(ctx context.Context, uid string) error {
	if uid == "" {
		return p.Plane.Release(ctx, uid) // returns an error
	}
	if _, err := p.ensemble.opts.Etcd.Delete(ctx, p.specKey()+uid); err != nil {
		return fmt.Errorf("deleting the spec of the cluster from etcd: %w", err)
	}
	live := p.ensemble.members.Live()
	if err := p.ensemble.recordDeletion(ctx, uid, live); err != nil {
		return err
	}
	for _, member := range live {
		if member == p.ensemble.opts.Self {
			continue
		}
		if err := p.release(ctx, member, uid); err != nil {
			return fmt.Errorf("closing the cluster on member %q: %w", member, err)
		}
	}
	if err := p.Plane.Release(ctx, uid); err != nil {
		return err
	}
	return p.ensemble.Destroy(ctx, uid)
}

// release makes another member close a cluster.
func (p *Plane) release(ctx context.Context, member, uid string) error {
	client, url, err := p.ensemble.opts.Membership.Call(member)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+ReleasePath, strings.NewReader(uid))
	if err != nil {
		return err
	}
	response, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusNoContent {
		text, _ := io.ReadAll(io.LimitReader(response.Body, maxResponseBytes))
		return fmt.Errorf("%s: %s", response.Status, bytes.TrimSpace(text))
	}
	return nil
}

// Synced reports whether external NATS servers sync every write. external is false when the
// members run the servers, which then always sync.
func (p *Plane) Synced() (external, synced, known bool, reason, message string) {
	return p.ensemble.opts.Membership.LogSynced()
}

// Membership returns the number of members of the ensemble, and of those that are live.
func (p *Plane) Membership() (all, live int) {
	return len(p.ensemble.opts.Members), len(p.ensemble.members.Live())
}

// ReleaseHandler handles requests of other members to close a cluster on this one, at ReleasePath.
func (p *Plane) ReleaseHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		uid, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 256))
		if err == nil {
			err = p.Plane.Release(r.Context(), string(uid))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

// Follow runs the stored clusters on this member until the context ends. It closes ready
// when it has tried to open every cluster that was stored at the start.
func (p *Plane) Follow(ctx context.Context, ready chan<- struct{}) {
	var once sync.Once
	for ctx.Err() == nil {
		if err := p.follow(ctx, func() { once.Do(func() { close(ready) }) }); err != nil && ctx.Err() == nil {
			p.ensemble.opts.Logger.Warn("watching the specs of clusters in etcd failed; retrying",
				slog.Any("error", err))
		}
		_ = retry.Sleep(ctx, retryInterval)
	}
}

// follow reads the specs of clusters and applies changes. It regularly retries clusters that
// could not be opened.
func (p *Plane) follow(ctx context.Context, read func()) error {
	found, err := p.ensemble.opts.Etcd.Get(ctx, p.specKey(), clientv3.WithPrefix())
	if err != nil {
		return err
	}
	wanted := map[string]string{}
	for _, kv := range found.Kvs {
		wanted[strings.TrimPrefix(string(kv.Key), p.specKey())] = string(kv.Value)
	}
	if err := p.removeDeleted(ctx, wanted); err != nil {
		return err
	}
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := p.ensemble.opts.Etcd.Watch(watching, p.specKey(), clientv3.WithPrefix(),
		clientv3.WithRev(found.Header.Revision+1))
	for {
		again := p.apply(ctx, wanted)
		read()
		select {
		case response, ok := <-changes:
			if !ok || response.Err() != nil {
				return response.Err()
			}
			deleted := false
			for _, event := range response.Events {
				deleted = deleted || event.Type == clientv3.EventTypeDelete
				uid := strings.TrimPrefix(string(event.Kv.Key), p.specKey())
				if event.Type == clientv3.EventTypeDelete {
					delete(wanted, uid)
				} else {
					wanted[uid] = string(event.Kv.Value)
				}
			}
			if deleted { // this member may not have been live at the time of the deletion
				if err := p.removeDeleted(ctx, wanted); err != nil {
					return err
				}
			}
		case <-again:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// apply opens the clusters that should run and closes the others. The channel fires when to
// retry; it is nil when everything succeeded.
func (p *Plane) apply(ctx context.Context, wanted map[string]string) <-chan time.Time {
	var again <-chan time.Time
	for uid, text := range wanted {
		var spec provision.Spec
		err := json.Unmarshal([]byte(text), &spec)
		if err == nil {
			err = p.Plane.Open(ctx, spec)
		}
		p.logFailure(uid, err)
		if err != nil && ctx.Err() == nil {
			again = time.After(retryInterval)
		}
	}
	for _, c := range p.Clusters() {
		if _, ok := wanted[c.UID]; !ok {
			if err := p.Plane.Release(ctx, c.UID); err != nil {
				p.ensemble.opts.Logger.Warn("closing a deleted cluster failed; retrying",
					slog.Any("error", err))
				again = time.After(retryInterval)
			}
		}
	}
	return again
}

// logFailure logs a failure once, not with every retry.
func (p *Plane) logFailure(uid string, err error) {
	if err == nil {
		p.failures.Forget(uid)
		return
	}
	if p.failures.Changed(uid, err.Error()) {
		p.ensemble.opts.Logger.Warn("opening a cluster on this member failed; retrying",
			slog.String("cluster", uid), slog.Any("error", err))
	}
}
