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

// How many denials are written down one by one.
const (
	// strangersPerSecond are of callers who have not proved who they are, all of
	// them together; deniedPerSecond are of one principal.
	strangersPerSecond = 50
	deniedPerSecond    = 20
	// burstSeconds is for how many seconds' worth of them there is room at once.
	burstSeconds = 10
	// summaryEvery is how often the number of the others is written down.
	summaryEvery = 10 * time.Second
	// maxPrincipals bounds the principals that are told apart.
	maxPrincipals = 10_000

	statusUnauthenticated = 401
)

// Trail is the audit log in two files, so that nobody can push out of it what
// others did: the calls of those who have not proved who they are go to a file of
// their own, and of denials that come faster than anybody reads them only the
// number is written.
type Trail struct {
	known   *Log
	unknown *Log

	mu         sync.Mutex
	strangers  counter
	principals map[string]*counter
	pending    *time.Timer // of the next summary; nil when nothing was left out
	suppressed int64
	closed     bool
}

// OpenTrail opens both files: that of opts, and one with -failed in its name.
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
	return &Trail{known: known, unknown: unknown, principals: make(map[string]*counter)}, nil
}

// counter is a token bucket that counts what it turns away.
type counter struct {
	left       float64
	at         time.Time
	suppressed int64
	sample     Record // whose denials they are
}

func (c *counter) take(perSecond float64, now time.Time) bool {
	if c.at.IsZero() {
		c.left = burstSeconds * perSecond
	}
	c.left = min(burstSeconds*perSecond, c.left+now.Sub(c.at).Seconds()*perSecond)
	c.at = now
	if c.left < 1 {
		c.suppressed++
		return false
	}
	c.left--
	return true
}

// Record writes a record down, or counts it.
func (t *Trail) Record(r Record) {
	stranger := r.Principal == "" || r.Status == statusUnauthenticated
	if r.Decision == Denied && !t.admit(&r, stranger) {
		return
	}
	if r.Decision == Denied && stranger {
		t.unknown.Record(r)
		return
	}
	t.known.Record(r)
}

// admit says whether a denial is written down by itself.
func (t *Trail) admit(r *Record, stranger bool) bool {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	of, perSecond := &t.strangers, float64(strangersPerSecond)
	if !stranger {
		of, perSecond = t.counterLocked(r, now), deniedPerSecond
	}
	if of.take(perSecond, now) {
		return true
	}
	t.suppressed++
	if t.pending == nil && !t.closed {
		t.pending = time.AfterFunc(summaryEvery, t.summarize)
	}
	return false
}

// counterLocked finds the counter of a principal; all that there is no room for
// share one. It is called with mu held.
func (t *Trail) counterLocked(r *Record, now time.Time) *counter {
	name := r.Principal
	if t.principals[name] == nil && len(t.principals) >= maxPrincipals {
		for other, c := range t.principals { // whoever was quiet for so long has all of it back
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

// summarize writes down how many denials were not.
func (t *Trail) summarize() {
	t.mu.Lock()
	t.pending = nil
	strangers := t.strangers.suppressed
	t.strangers.suppressed = 0
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
	if strangers > 0 {
		t.unknown.Record(summary(strangers))
	}
	for _, r := range others {
		t.known.Record(r)
	}
}

func summary(count int64) Record {
	return Record{
		Time: time.Now(), Surface: "audit", Verb: "suppress", Resource: "auditrecords",
		Decision: Denied, Count: count,
	}
}

// Tail returns the last records of both files that match, the newest first.
func (t *Trail) Tail(ctx context.Context, q Query) ([]Record, error) {
	t.summarize()
	known, err := t.known.Tail(ctx, q)
	if err != nil {
		return nil, err
	}
	unknown, err := t.unknown.Tail(ctx, q)
	if err != nil || len(unknown) == 0 {
		return known, err
	}
	all := append(known, unknown...)
	slices.SortStableFunc(all, func(a, b Record) int { return b.Time.Compare(a.Time) })
	return all[:min(len(all), cmp.Or(max(q.Limit, 0), DefaultLimit), MaxLimit)], nil
}

// Reopen goes on in new files where the old ones were moved away.
func (t *Trail) Reopen(ctx context.Context) error {
	return errors.Join(t.known.Reopen(ctx), t.unknown.Reopen(ctx))
}

// Stats counts what became of records so far.
func (t *Trail) Stats() Stats {
	a, b := t.known.Stats(), t.unknown.Stats()
	t.mu.Lock()
	defer t.mu.Unlock()
	return Stats{
		Written: a.Written + b.Written, Dropped: a.Dropped + b.Dropped, Failed: a.Failed + b.Failed,
		Queued:     a.Queued + b.Queued,
		Suppressed: t.suppressed,
	}
}

// Close writes what is left and closes both files.
func (t *Trail) Close() error {
	t.mu.Lock()
	t.closed = true
	if t.pending != nil {
		t.pending.Stop()
	}
	t.mu.Unlock()
	t.summarize()
	return errors.Join(t.known.Close(), t.unknown.Close())
}
