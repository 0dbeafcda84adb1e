// Package budget decides whether the store has space for a write: for an object of this size at
// all, in the organization's budget, and in etcd.
//
// A Guard wraps the storage of every kind (storage.go). There the exact size of an object is known,
// encrypted and encoded, and every write passes through. The usage of organizations is counted in
// memory (usage.go): it is read once at the start and followed from then on (follow.go).
// internal/controlplane/etcd owns the store itself and its free space.
//
// Writes of callers that add bytes are rejected early. Writes that remove something (deletions,
// revocations, the removal of a finalizer) and writes of the service itself are never rejected
// here; internal/controlplane/etcd reserves space for them.
//
// Locks:
//
//	Guard.mu  protects recent and window
//	usage.mu  protects objects and organizations, with all accounts
//
// The two are never held at the same time, and neither is held during I/O.
//
// Invariant: an organization's counted usage is the sum of its stored objects and of the holds of
// its current writes. Every hold ends in settle or release.
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

// MaxObject is the largest object that a caller may write, in bytes as stored. etcd accepts
// requests of at least 1.5 MiB; the difference is for fields that the service adds to an object
// later.
const MaxObject = 1 << 20

// retryAfter is the Retry-After value, in seconds, of a write that was rejected for lack of space.
// Compaction takes less time.
const retryAfter = 2

// essentialGrowth is the number of bytes that an object may grow by a change that removes
// something: a time, a condition, the name of the caller.
const essentialGrowth = 16 << 10

// Limits bound the objects and bytes that one organization may store; 0 is no limit.
type Limits struct {
	Objects int64
	Bytes   int64
}

// Guard decides about every write.
type Guard struct {
	limits Limits
	store  etcd.Store // nil: the free space of the store is not known
	prefix string     // of the keys of resources
	usage  *usage

	mu     sync.Mutex // protects the fields below
	recent [2]int64   // bytes admitted within this and the previous window
	window time.Time  // start of the current window
}

// New creates a guard for the keys under a root.
func New(root string, limits Limits, store etcd.Store) *Guard {
	return &Guard{limits: limits, store: store, prefix: path.Join("/", root) + "/", usage: newUsage()}
}

// Usage is the number of objects and bytes that one organization has stored.
type Usage struct{ Objects, Bytes int64 }

// Usage returns the usage of every organization.
func (g *Guard) Usage() map[string]Usage { return g.usage.all() }

// Degraded returns why growth is being rejected, or "".
func (g *Guard) Degraded() string {
	if g.store == nil {
		return ""
	}
	space := g.store.Space()
	if !space.NearlyFull() {
		return ""
	}
	return nearlyFull(space)
}

func nearlyFull(space etcd.Space) string {
	return fmt.Sprintf("resource store is nearly full (%d of %d bytes are used): new and growing objects are rejected "+
		"until something is deleted; deleting, revoking and reading work as usual", space.Used, space.Quota)
}

// write is the state of one write. Begin creates it, or the storage for writes that do not come
// from a call.
type write struct {
	essential bool
	rejection error // why the last attempt was rejected
	held      hold
}

type writeKey struct{}

// Begin returns a context for one write. Essential can change its classification later.
func Begin(ctx context.Context, essential bool) context.Context {
	return context.WithValue(ctx, writeKey{}, &write{essential: essential})
}

// Essential sets whether the change that is about to be stored removes something, so that it must
// not be rejected for lack of space.
func Essential(ctx context.Context, essential bool) {
	if w, ok := ctx.Value(writeKey{}).(*write); ok {
		w.essential = essential
	}
}

// admit decides about an object of a size, and holds space for it until the write is settled.
func (g *Guard) admit(ctx context.Context, w *write, key string, size int64) error {
	g.usage.release(&w.held) // the hold of an earlier attempt
	object := g.parseKey(key)
	service := caller.ByService(ctx)
	if object.counted() && !service {
		if err := g.usage.wait(ctx); err != nil {
			return unavailable("usage of organizations is not counted yet; retry")
		}
	}
	growth := g.usage.growth(key, size)
	essential := w.essential && growth <= essentialGrowth
	if !service && !essential && size > MaxObject && growth > 0 {
		return apierrors.NewRequestEntityTooLargeError(
			fmt.Sprintf("object would take %d bytes in the store; the limit is %d", size, MaxObject))
	}
	exempt := essential || service && object.resource != "events"
	limits := g.limits
	if exempt {
		limits = Limits{}
	}
	if err := g.usage.hold(&w.held, key, object, size, limits); err != nil {
		return err
	}
	if err := g.checkSpace(growth, size, exempt, object.resource == "events"); err != nil {
		g.usage.release(&w.held)
		return err
	}
	return nil
}

// checkSpace checks the free space of the store as a whole. Recently admitted writes may not be
// visible there yet, so it adds them.
func (g *Guard) checkSpace(growth, size int64, exempt, events bool) error {
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
	space := g.store.Space()
	expected := g.recent[0] + g.recent[1] + size
	if events {
		expected += space.Quota / 2 // events may use half of the quota only, so that they leave space for objects
	}
	if !exempt && (growth > 0 && !space.AllowsGrowth(expected) || !space.AllowsChanges(expected)) {
		if !events {
			g.store.RequestCompaction()
		}
		return unavailable(nearlyFull(space))
	}
	g.recent[0] += size
	return nil
}

// recentWindow is longer than etcd takes to count a write.
const recentWindow = 250 * time.Millisecond

// unavailable returns 503 with Retry-After; clients of the API machinery retry it automatically.
func unavailable(text string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable,
		Reason: metav1.StatusReasonServiceUnavailable, Message: text,
		Details: &metav1.StatusDetails{RetryAfterSeconds: retryAfter},
	}}
}

// objectKey is the information about an object that its key contains.
type objectKey struct {
	apiGroup, resource, organization, name string
}

// parseKey parses a key: <prefix><group>/<resource>/<organization>/<name>. The group is missing for
// core/v1, the organization for objects without one.
func (g *Guard) parseKey(key string) objectKey {
	parts := strings.Split(strings.TrimLeft(strings.TrimPrefix(key, g.prefix), "/"), "/")
	p := objectKey{name: parts[len(parts)-1]}
	if parts[0] == v1alpha1.GroupName {
		p.apiGroup, parts = parts[0], parts[1:]
	}
	p.resource = parts[0]
	if len(parts) == 3 {
		p.organization = parts[1]
	}
	return p
}

// keyOf returns the etcd key of an object that a store calls name.
func (g *Guard) keyOf(name string) string { return g.prefix + strings.TrimPrefix(name, "/") }

// counted reports whether an object counts against the budget of its organization: objects of our
// kinds do, events do not.
func (p objectKey) counted() bool { return p.apiGroup != "" && p.organization != "" }

// exceeded returns an error in the form that Kubernetes uses for its own quotas.
func (p objectKey) exceeded(what string, requested, used, limit int64) error {
	return apierrors.NewForbidden(schema.GroupResource{Group: p.apiGroup, Resource: p.resource}, p.name, fmt.Errorf(
		"exceeded quota: resources.%s of organization %s, requested: %d, used: %d, limited: %d; "+
			"delete objects that are not needed, or ask the operator to raise quotas.resources.%s",
		what, cmp.Or(p.organization, "(none)"), requested, used, limit, what))
}
