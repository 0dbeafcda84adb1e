package lograte

import (
	"cmp"
	"log/slog"
	"sync"
	"time"
)

// Policy defines which repetitions of an event are logged. The zero Policy logs an event once.
type Policy struct {
	// After is how long an event must recur before its first line. It suits failures that usually
	// end soon. 0 logs the first event.
	After time.Duration
	// Forget is the time without the event after which the next one counts as new. 0 means never.
	Forget time.Duration
	// Interval is the time after which an event that recurs is logged again. 0 means never.
	Interval time.Duration
	// Lines is how many lines are logged within the interval. 0 means one.
	Lines int
	// Keys is how many events a Limiter remembers. With more of them it forgets all. 0 means 256.
	Keys int
}

// Limiter applies a Policy to events, which it distinguishes by a key. The zero Limiter has the zero
// Policy. It is safe for concurrent use.
type Limiter struct {
	mu     sync.Mutex // protects all fields below
	policy Policy
	events map[string]*event
}

// defaultKeys is the default of Policy.Keys.
const defaultKeys = 256

type event struct {
	text    string
	first   time.Time // when it began to recur
	last    time.Time
	window  time.Time // begin of the current interval
	lines   int       // lines in the current interval
	dropped int       // events without a line since the last line
}

// New returns a Limiter.
func New(p Policy) *Limiter { return &Limiter{policy: p} }

// SetLines changes Policy.Lines.
func (l *Limiter) SetLines(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.policy.Lines = n
}

// Allow counts an event and reports whether to log it, and how many events of this key were not
// logged since its last line.
func (l *Limiter) Allow(key string) (ok bool, dropped int) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.allowLocked(l.eventLocked(key, now), now)
}

// Changed is Allow for an event with a text: another text than that of the previous event of the
// key counts as a new event.
func (l *Limiter) Changed(key, text string) bool {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.eventLocked(key, now)
	if e.text != text {
		*e = event{text: text, first: now}
	}
	ok, _ := l.allowLocked(e, now)
	return ok
}

// Level counts an event and returns the level to log it at: warn, or debug for a repetition.
func (l *Limiter) Level(key string) slog.Level {
	if ok, _ := l.Allow(key); ok {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// Forget removes an event: the next one with this key counts as new.
func (l *Limiter) Forget(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.events, key)
}

// eventLocked returns the event of a key, which it creates if necessary.
func (l *Limiter) eventLocked(key string, now time.Time) *event {
	e := l.events[key]
	if e == nil || l.policy.Forget > 0 && now.Sub(e.last) > l.policy.Forget {
		if l.events == nil || e == nil && len(l.events) >= cmp.Or(l.policy.Keys, defaultKeys) {
			l.events = map[string]*event{}
		}
		e = &event{first: now}
		l.events[key] = e
	}
	return e
}

func (l *Limiter) allowLocked(e *event, now time.Time) (ok bool, dropped int) {
	e.last = now
	if l.policy.Interval > 0 && now.Sub(e.window) >= l.policy.Interval {
		e.window, e.lines = now, 0
	}
	if now.Sub(e.first) < l.policy.After || e.lines >= cmp.Or(l.policy.Lines, 1) {
		e.dropped++
		return false, 0
	}
	if e.lines == 0 {
		e.window = now // the interval begins with its first line
	}
	e.lines++
	dropped, e.dropped = e.dropped, 0
	return true, dropped
}
