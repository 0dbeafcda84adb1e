package audit

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of denials that get a record each.
const (
	// unauthenticatedPerSecond is the rate for all unauthenticated callers together,
	// deniedPerSecond the rate for one principal.
	unauthenticatedPerSecond = 50
	deniedPerSecond          = 20
	// burstSeconds is the size of a bucket, in seconds of its rate.
	burstSeconds = 10
	// summaryEvery is the interval at which the number of suppressed denials is recorded.
	summaryEvery = 10 * time.Second
	// maxPrincipals limits the principals that have a counter of their own.
	maxPrincipals = 10_000

	statusUnauthenticated = 401
)

// Trail is the audit log in two files, so that a flood of denials cannot rotate away the
// records of other callers. Denials of unauthenticated callers go to a file of their
// own. Denials above a rate are only counted, and their number is recorded.
type Trail struct {
	main   *Log
	failed *Log

	mu              sync.Mutex // protects the fields below
	unauthenticated counter
	principals      map[string]*counter
	pending         *time.Timer // timer of the next summary; nil if no denial was suppressed
	suppressed      int64
	closed          bool
}

// OpenTrail opens both files: the file of opts, and one with -failed in its name.
func OpenTrail(opts Options) (*Trail, error) {
	known, err := Open(opts)
	if err != nil {
		return nil, err
	}
	extension := filepath.Ext(opts.Path)
	opts.Path = strings.TrimSuffix(opts.Path, extension) + "-failed" + extension
	unknown, err := Open(opts)
	if err != nil {
		return nil, errors.Join(err, known.Close())
	}
	return &Trail{main: known, failed: unknown, principals: make(map[string]*counter)}, nil
}

// counter is a token bucket that counts suppressed denials.
type counter struct {
	tokens     float64
	at         time.Time
	suppressed int64
	sample     Record // has the principal and organization of the denials
}

func (c *counter) take(perSecond float64, now time.Time) bool {
	if c.at.IsZero() {
		c.tokens = burstSeconds * perSecond
	}
	c.tokens = min(burstSeconds*perSecond, c.tokens+now.Sub(c.at).Seconds()*perSecond)
	c.at = now
	if c.tokens < 1 {
		c.suppressed++
		return false
	}
	c.tokens--
	return true
}

// Record writes a record, or only counts it. A nil Trail drops it: the audit log is off.
func (t *Trail) Record(r Record) {
	if t == nil {
		return
	}
	unauthenticated := r.Principal == "" || r.Status == statusUnauthenticated
	if r.Decision == Denied && !t.admit(&r, unauthenticated) {
		return
	}
	if r.Decision == Denied && unauthenticated {
		t.failed.Record(r)
		return
	}
	t.main.Record(r)
}

// admit reports whether a denial gets a record of its own.
func (t *Trail) admit(r *Record, unauthenticated bool) bool {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	bucket, perSecond := &t.unauthenticated, float64(unauthenticatedPerSecond)
	if !unauthenticated {
		bucket, perSecond = t.counterLocked(r, now), deniedPerSecond
	}
	if bucket.take(perSecond, now) {
		return true
	}
	t.suppressed++
	if t.pending == nil && !t.closed {
		t.pending = time.AfterFunc(summaryEvery, t.summarize)
	}
	return false
}

// counterLocked returns the counter of a principal. Principals above maxPrincipals share
// one counter. The caller holds mu.
func (t *Trail) counterLocked(r *Record, now time.Time) *counter {
	name := r.Principal
	if t.principals[name] == nil && len(t.principals) >= maxPrincipals {
		for other, c := range t.principals { // the bucket of an idle principal is full again
			if c.suppressed == 0 && now.Sub(c.at) > burstSeconds*time.Second {
				delete(t.principals, other)
			}
		}
		if len(t.principals) >= maxPrincipals {
			name = ""
		}
	}
	if t.principals[name] == nil {
		t.principals[name] = &counter{sample: Record{Principal: name, Organization: r.Organization}}
	}
	return t.principals[name]
}

// summarize records the number of suppressed denials.
func (t *Trail) summarize() {
	t.mu.Lock()
	t.pending = nil
	unauthenticated := t.unauthenticated.suppressed
	t.unauthenticated.suppressed = 0
	var others []Record
	for _, c := range t.principals {
		if c.suppressed > 0 {
			r := summary(c.suppressed)
			r.Principal, r.Organization = c.sample.Principal, c.sample.Organization
			others = append(others, r)
			c.suppressed = 0
		}
	}
	t.mu.Unlock()
	if unauthenticated > 0 {
		t.failed.Record(summary(unauthenticated))
	}
	for _, r := range others {
		t.main.Record(r)
	}
}

func summary(count int64) Record {
	return Record{
		Time: time.Now(), Surface: "audit", Verb: "suppress", Resource: "auditrecords",
		Decision: Denied, Count: count,
	}
}

// Tail returns the newest matching records of both files, the newest first.
func (t *Trail) Tail(ctx context.Context, q Query) ([]Record, error) {
	t.summarize()
	known, err := t.main.Tail(ctx, q)
	if err != nil {
		return nil, err
	}
	unknown, err := t.failed.Tail(ctx, q)
	if err != nil || len(unknown) == 0 {
		return known, err
	}
	all := append(known, unknown...)
	slices.SortStableFunc(all, func(a, b Record) int { return b.Time.Compare(a.Time) })
	return all[:min(len(all), cmp.Or(max(q.Limit, 0), DefaultLimit), MaxLimit)], nil
}

// Reopen opens both files again after they were renamed.
func (t *Trail) Reopen(ctx context.Context) error {
	return errors.Join(t.main.Reopen(ctx), t.failed.Reopen(ctx))
}

// Stats returns the counters of both files together.
func (t *Trail) Stats() Stats {
	a, b := t.main.Stats(), t.failed.Stats()
	t.mu.Lock()
	defer t.mu.Unlock()
	return Stats{
		Written: a.Written + b.Written, Dropped: a.Dropped + b.Dropped, Failed: a.Failed + b.Failed,
		Queued:     a.Queued + b.Queued,
		Suppressed: t.suppressed,
	}
}

// Close writes the remaining records and closes both files.
func (t *Trail) Close() error {
	t.mu.Lock()
	t.closed = true
	if t.pending != nil {
		t.pending.Stop()
	}
	t.mu.Unlock()
	t.summarize()
	return errors.Join(t.main.Close(), t.failed.Close())
}
