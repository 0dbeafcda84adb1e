package group

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

	"freshet/internal/dataplane"
	"freshet/internal/dataplane/provision"
)

// Plane runs the clusters of a whole group. Provision and Destroy are for the elected
// member: it writes down what should run, and every member does so (Follow).
type Plane struct {
	*dataplane.Plane
	group *Group

	mu     sync.Mutex
	failed map[string]error // by UID: why this member could not open a cluster; guarded by mu
}

// NewPlane makes the plane of a member into one of its group.
func NewPlane(local *dataplane.Plane, g *Group) *Plane {
	return &Plane{Plane: local, group: g, failed: map[string]error{}}
}

const (
	specAgain   = 500 * time.Millisecond
	maxSpec     = 1 << 20
	releaseWait = 15 * time.Second // for a member to close a cluster
)

func (p *Plane) specs() string { return p.group.key("clusters/") }

// Provision says that a cluster should run, opens it here and waits until all its
// shards have owners.
func (p *Plane) Provision(ctx context.Context, spec provision.Spec, report func(provision.Part)) error {
	text, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("writing down what should run: %w", err)
	}
	key := p.specs() + spec.UID
	_, err = p.group.opts.Etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.Value(key), "=", string(text))).
		Else(clientv3.OpPut(key, string(text))).
		Commit()
	if err != nil {
		return fmt.Errorf("writing down what should run: %w", err)
	}
	return p.Plane.Provision(ctx, spec, report)
}

// Destroy removes a cluster from all members, and what they share of it.
func (p *Plane) Destroy(ctx context.Context, uid string) error {
	if uid == "" {
		return p.Plane.Release(ctx, uid) // which refuses
	}
	if _, err := p.group.opts.Etcd.Delete(ctx, p.specs()+uid); err != nil {
		return fmt.Errorf("writing down that a cluster should not run: %w", err)
	}
	live := p.group.live()
	if err := p.group.leaveNotes(ctx, uid, live); err != nil {
		return err
	}
	for _, member := range live {
		if member == p.group.opts.Self {
			continue
		}
		if err := p.release(ctx, member, uid); err != nil {
			return fmt.Errorf("closing the cluster on member %s: %w", member, err)
		}
	}
	if err := p.Plane.Release(ctx, uid); err != nil {
		return err
	}
	return p.group.Destroy(ctx, uid)
}

// release has another member close a cluster.
func (p *Plane) release(ctx context.Context, member, uid string) error {
	client, url, err := p.group.opts.Call(member)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, releaseWait)
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
		text, _ := io.ReadAll(io.LimitReader(response.Body, maxSpec))
		return fmt.Errorf("%s: %s", response.Status, bytes.TrimSpace(text))
	}
	return nil
}

// Grouped says that clusters run on a group of members.
func (*Plane) Grouped() bool { return true }

// Synced says whether a log that others run syncs every write; external is false when
// the members run it, and see to it.
func (p *Plane) Synced() (external, synced, known bool, reason, message string) {
	if p.group.opts.Synced == nil {
		return false, true, true, "", ""
	}
	synced, known, reason, message = p.group.opts.Synced()
	return true, synced, known, reason, message
}

// Membership counts the members of the group, and those that are live.
func (p *Plane) Membership() (all, live int) { return len(p.group.opts.Members), len(p.group.live()) }

// Releases answers other members that want a cluster closed here, at ReleasePath.
func (p *Plane) Releases() http.Handler {
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

// Follow runs what should run on this member until the context ends. ready is closed
// when everything that was written down at the start was opened, or could not be.
func (p *Plane) Follow(ctx context.Context, ready chan<- struct{}) {
	var once sync.Once
	for ctx.Err() == nil {
		if err := p.follow(ctx, func() { once.Do(func() { close(ready) }) }); err != nil && ctx.Err() == nil {
			p.group.opts.Logger.Warn("which clusters should run cannot be followed for now; trying again",
				slog.String("error", err.Error()))
		}
		select {
		case <-time.After(specAgain):
		case <-ctx.Done():
		}
	}
}

// follow reads what should run and hears of changes. What could not be opened is
// tried again every now and then.
func (p *Plane) follow(ctx context.Context, read func()) error {
	found, err := p.group.opts.Etcd.Get(ctx, p.specs(), clientv3.WithPrefix())
	if err != nil {
		return err
	}
	wanted := map[string]string{}
	for _, kv := range found.Kvs {
		wanted[strings.TrimPrefix(string(kv.Key), p.specs())] = string(kv.Value)
	}
	if err := p.clearLeftovers(ctx, wanted); err != nil {
		return err
	}
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := p.group.opts.Etcd.Watch(watching, p.specs(), clientv3.WithPrefix(),
		clientv3.WithRev(found.Header.Revision+1))
	for {
		again := p.apply(ctx, wanted)
		read()
		select {
		case answer, ok := <-changes:
			if !ok || answer.Err() != nil {
				return answer.Err()
			}
			deleted := false
			for _, event := range answer.Events {
				deleted = deleted || event.Type == clientv3.EventTypeDelete
				uid := strings.TrimPrefix(string(event.Kv.Key), p.specs())
				if event.Type == clientv3.EventTypeDelete {
					delete(wanted, uid)
				} else {
					wanted[uid] = string(event.Kv.Value)
				}
			}
			if deleted { // this member may not have been live when it was
				if err := p.clearLeftovers(ctx, wanted); err != nil {
					return err
				}
			}
		case <-again:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// apply opens what should run and closes what should not. The channel says when to try
// again; nil when all is well.
func (p *Plane) apply(ctx context.Context, wanted map[string]string) <-chan time.Time {
	var again <-chan time.Time
	for uid, text := range wanted {
		var spec provision.Spec
		err := json.Unmarshal([]byte(text), &spec)
		if err == nil {
			err = p.Plane.Open(ctx, spec)
		}
		p.note(uid, err)
		if err != nil && ctx.Err() == nil {
			again = time.After(specAgain)
		}
	}
	for _, c := range p.Clusters() {
		if _, ok := wanted[c.UID]; !ok {
			if err := p.Plane.Release(ctx, c.UID); err != nil {
				p.group.opts.Logger.Warn("a cluster that was deleted could not be closed; trying again",
					slog.String("error", err.Error()))
				again = time.After(specAgain)
			}
		}
	}
	return again
}

// note logs a failure once, not at every try.
func (p *Plane) note(uid string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.failed[uid]
	if err == nil {
		delete(p.failed, uid)
		return
	}
	p.failed[uid] = err
	if before == nil || before.Error() != err.Error() {
		p.group.opts.Logger.Warn("a cluster could not be opened on this member; trying again",
			slog.String("cluster", uid), slog.String("error", err.Error()))
	}
}
