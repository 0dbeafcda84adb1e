// Package budget decides whether there is room in the store for what is about to
// be written: for an object of this size at all, in the organization's budget,
// and in etcd.
//
// A Guard stands around the storage of every kind (storage.go), where the size of
// an object is known exactly, encrypted and encoded, and where no way of writing
// one leads around. What organizations use is counted in memory (usage.go): read
// once at the start, and followed from then on (follow.go).
//
// What callers add is refused early. What takes something away (deletions,
// revocations, the removal of a finalizer) and what the service itself writes is
// never refused here; internal/controlplane/etcd keeps room for it.
package budget

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/caller"
	"freshet/internal/controlplane/etcd"
)

// MaxObject is how large an object may be that a caller writes, as it is stored.
// etcd takes requests of 1.5 MiB at least; the rest is for what the service adds
// to an object later.
const MaxObject = 1 << 20

// retryAfter is when a caller may try again who was refused for want of room, in
// seconds. Compaction takes less.
const retryAfter = 2

// essentialGrowth is how much larger an object may become by a change that takes
// something away: a time, a condition, who did it.
const essentialGrowth = 16 << 10

// Limits bound what one organization may have stored; 0 is no limit.
type Limits struct {
	Objects int64
	Bytes   int64
}

// Guard decides about every write.
type Guard struct {
	limits Limits
	store  etcd.Store // nil: nobody knows how full the store is
	prefix string     // of the keys of resources
	usage  *usage

	mu     sync.Mutex // guards what follows
	recent [2]int64   // bytes let in within this and the last window
	window time.Time  // when this one began
}

// New makes a guard of the keys under a root.
func New(root string, limits Limits, store etcd.Store) *Guard {
	return &Guard{limits: limits, store: store, prefix: path.Join("/", root) + "/", usage: newUsage()}
}

// Usage is what one organization has stored.
type Usage struct{ Objects, Bytes int64 }

// Usage returns that of every organization.
func (g *Guard) Usage() map[string]Usage { return g.usage.all() }

// Degraded says in one sentence that growth is being refused, or "".
func (g *Guard) Degraded() string {
	if g.store == nil {
		return ""
	}
	room := g.store.Room()
	if !room.Tight() {
		return ""
	}
	return noRoom(room)
}

func noRoom(room etcd.Room) string {
	return fmt.Sprintf("the resource store is nearly full (%d of %d bytes are used): nothing that adds to it is "+
		"stored until something is deleted; "+
		"deleting, revoking and reading work as usual", room.Used, room.Quota)
}

// write is one call's way through the store. It is made by Begin, or by the
// storage for what does not come through a call.
type write struct {
	essential bool
	refusal   error // why the last attempt was refused
	held      hold
}

type writeKey struct{}

// Begin makes a context for one write, about which Essential can tell more.
func Begin(ctx context.Context, essential bool) context.Context {
	return context.WithValue(ctx, writeKey{}, &write{essential: essential})
}

// Essential says whether the change that is about to be stored takes something
// away, so that it must not be refused for want of room.
func Essential(ctx context.Context, essential bool) {
	if w, ok := ctx.Value(writeKey{}).(*write); ok {
		w.essential = essential
	}
}

// admit decides about an object of a size, and holds room for it until the write
// is settled.
func (g *Guard) admit(ctx context.Context, w *write, key string, size int64) error {
	g.usage.release(&w.held) // of an earlier attempt
	place := g.placeOf(key)
	service := caller.ByService(ctx)
	if place.counted() && !service {
		if err := g.usage.wait(ctx); err != nil {
			return unavailable("what organizations have stored is not counted yet; try again")
		}
	}
	growth := g.usage.growth(key, size)
	essential := w.essential && growth <= essentialGrowth
	if !service && !essential && size > MaxObject && growth > 0 {
		return apierrors.NewRequestEntityTooLargeError(
			fmt.Sprintf("the object would take %d bytes in the store, and the limit is %d", size, MaxObject))
	}
	free := essential || service && place.resource != "events"
	limits := g.limits
	if free {
		limits = Limits{}
	}
	if err := g.usage.hold(&w.held, key, place, size, limits); err != nil {
		return err
	}
	if err := g.checkRoom(growth, size, free, place.resource == "events"); err != nil {
		g.usage.release(&w.held)
		return err
	}
	return nil
}

// checkRoom looks at the store as a whole. What was let in within the last
// moments may not show there yet.
func (g *Guard) checkRoom(growth, size int64, free, events bool) error {
	if g.store == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := time.Now(); now.Sub(g.window) > recentWindow {
		g.recent = [2]int64{0, g.recent[0]}
		if now.Sub(g.window) > 2*recentWindow {
			g.recent[1] = 0
		}
		g.window = now
	}
	room := g.store.Room()
	soon := g.recent[0] + g.recent[1] + size
	if events {
		soon += room.Quota / 2 // they never crowd out what they are about
	}
	if !free && (growth > 0 && !room.TakesGrowth(soon) || !room.TakesChanges(soon)) {
		if !events {
			g.store.Relieve()
		}
		return unavailable(noRoom(room))
	}
	g.recent[0] += size
	return nil
}

// recentWindow is longer than etcd takes to count what it was given.
const recentWindow = 250 * time.Millisecond

// unavailable is 503 with Retry-After, at which the clients of the API machinery
// try again by themselves.
func unavailable(text string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable,
		Reason: metav1.StatusReasonServiceUnavailable, Message: text,
		Details: &metav1.StatusDetails{RetryAfterSeconds: retryAfter},
	}}
}

// place is what a key says about an object.
type place struct {
	group, resource, organization, name string
}

// placeOf reads a key: <prefix><group>/<resource>/<organization>/<name>, without
// a group for core/v1 and without an organization for what lies in none.
func (g *Guard) placeOf(key string) place {
	parts := strings.Split(strings.TrimLeft(strings.TrimPrefix(key, g.prefix), "/"), "/")
	p := place{name: parts[len(parts)-1]}
	if parts[0] == v1alpha1.GroupName {
		p.group, parts = parts[0], parts[1:]
	}
	p.resource = parts[0]
	if len(parts) == 3 {
		p.organization = parts[1]
	}
	return p
}

// keyOf is the key in etcd of what a store calls by this name.
func (g *Guard) keyOf(name string) string { return g.prefix + strings.TrimPrefix(name, "/") }

// counted says whether an object counts against the budget of its organization:
// those of our kinds do, what the service tells about them does not.
func (p place) counted() bool { return p.group != "" && p.organization != "" }

// exceeded words a refusal as the API machinery words those of its own quotas.
func (p place) exceeded(what string, requested, used, limit int64) error {
	return apierrors.NewForbidden(schema.GroupResource{Group: p.group, Resource: p.resource}, p.name, fmt.Errorf(
		"exceeded quota: resources.%s of organization %s, requested: %d, used: %d, limited: %d; delete what is not needed, or ask the operator to raise quotas.resources.%s",
		what, cmp.Or(p.organization, "(none)"), requested, used, limit, what))
}
