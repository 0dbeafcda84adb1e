package history

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
)

// Limits of a Recorder. With them the rings take at most 14 MiB: a series has 264 points of up to five
// values of 4 bytes.
const (
	maxSeries   = 1000 // of each kind
	maxClusters = 500
)

// saveEvery is the time between two writes of the file.
const saveEvery = 5 * time.Minute

// scoreDecay is the part of a score that remains after a sample: half of it is gone after 8 minutes.
const scoreDecay = 0.98

// Source is a running cluster.
type Source struct {
	UID        string
	Statistics *messaging.Statistics
	Kafka      *messaging.KafkaLog
	// Groups returns the coordinator of the consumer groups if it is open, else nil.
	Groups func() *groups.Coordinator
}

// Options configures a Recorder; all are required.
type Options struct {
	Path     string // of the file
	Clusters func() []Source
	HasSpace func() bool // while it is false, the disk is nearly full and the file is not written
	Logger   *slog.Logger
}

// Recorder records the history of this server.
type Recorder struct {
	opts    Options
	sampler sampler // used by Run only

	mu     sync.Mutex // protects the fields below, and the rings and scores of all series
	series map[Key]*series
	counts [kinds]map[string]int // by cluster
}

// New returns a recorder with the history in the file. A file that is missing or damaged means an empty
// history.
func New(opts Options) *Recorder {
	r := &Recorder{opts: opts}
	r.clear()
	r.sampler = sampler{recorder: r, clusters: make(map[string]*clusterScan)}
	if err := r.load(); err != nil {
		r.clear()
		opts.Logger.Warn("history of statistics cannot be read from its file; it starts empty",
			slog.String("file", opts.Path), slog.Any("error", err))
	}
	return r
}

func (r *Recorder) clear() {
	r.series = make(map[Key]*series)
	for i := range r.counts {
		r.counts[i] = make(map[string]int)
	}
}

// Run samples and saves until the context ends, and saves once more.
func (r *Recorder) Run(ctx context.Context) {
	for saved := time.Now(); ; {
		next := time.Now().Add(sampleEvery / 4).Truncate(sampleEvery).Add(sampleEvery)
		timer := time.NewTimer(time.Until(next))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			r.save()
			return
		}
		r.sampler.sample(ctx, time.Now())
		if time.Since(saved) >= saveEvery {
			r.save()
			saved = time.Now()
		}
	}
}

// Answer returns the history of a key that this server has recorded.
func (r *Recorder) Answer(q *Query) *Answer {
	a := emptyAnswer(q)
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.series[q.Key]
	if s == nil {
		return a
	}
	a.Recorded = true
	i := q.Range.index()
	last := lastPoint(q.Until, resolutions[i].step)
	for index, column := range columnsOf[q.Kind] {
		*a.values(q.Kind, column) = s.rings[i].read(last, columnsOf[q.Kind], index)
	}
	return a
}

// Valid reports whether a query from another member can be answered.
func (q *Query) Valid() bool { return q.Kind < kinds && q.Range.index() >= 0 }

// keys returns the keys of one kind of a cluster.
func (r *Recorder) keys(kind Kind, cluster string) (list []Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.series {
		if key.Kind == kind && key.Cluster == cluster {
			list = append(list, key)
		}
	}
	return list
}

// find returns a series, or nil.
func (r *Recorder) find(key Key) *series {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.series[key]
}

// record adds a sample to a series, if it is still there, and updates its score with the rate.
func (r *Recorder) record(key Key, at time.Time, v *sample, rate float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.series[key]; s != nil {
		s.add(key.Kind, at, v)
		s.score += (1 - scoreDecay) * rate
	}
}

// decay lowers all scores, and removes series without a point.
func (r *Recorder) decay(at time.Time) {
	last := len(resolutions) - 1
	oldest := lastPoint(at, resolutions[last].step) - int64(resolutions[last].points)
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, s := range r.series {
		s.score *= scoreDecay
		if newest := s.newest(); newest != 0 && newest < oldest {
			r.removeLocked(key)
		}
	}
}

func (r *Recorder) remove(key Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.removeLocked(key)
}

func (r *Recorder) removeLocked(key Key) {
	if r.series[key] == nil {
		return
	}
	delete(r.series, key)
	count := r.counts[key.Kind]
	if count[key.Cluster]--; count[key.Cluster] == 0 {
		delete(count, key.Cluster)
	}
}

// admit returns the series of a key and creates it if there is room, or if it may replace another one.
// rate is the activity of the key per second.
func (r *Recorder) admit(key Key, rate float64) *series {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.series[key]; s != nil {
		return s
	}
	if r.roomLocked(key.Kind) <= 0 {
		victim, ok := r.victimLocked(key, rate)
		if !ok {
			return nil
		}
		r.removeLocked(victim)
	}
	s := newSeries(key.Kind)
	s.score = rate
	r.series[key] = s
	r.counts[key.Kind][key.Cluster]++
	return s
}

// room returns how many series of a kind can be created without replacing one.
func (r *Recorder) room(kind Kind) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.roomLocked(kind)
}

func (r *Recorder) roomLocked(kind Kind) int {
	n := maxSeries
	if kind == Cluster {
		n = maxClusters
	}
	for _, count := range r.counts[kind] {
		n -= count
	}
	return n
}

// victimLocked returns the series that a new one replaces: the least busy one of the cluster with the most
// series, so that a busy cluster does not take the history of the others. A cluster that has about as
// many as any other replaces its own, if the new one is twice as busy.
func (r *Recorder) victimLocked(key Key, rate float64) (victim Key, ok bool) {
	from, most := key.Cluster, 0
	for cluster, count := range r.counts[key.Kind] {
		if count > most {
			from, most = cluster, count
		}
	}
	always := r.counts[key.Kind][key.Cluster]+1 < most
	if !always {
		from = key.Cluster
	}
	lowest := 0.0
	for other, s := range r.series {
		if other.Kind == key.Kind && other.Cluster == from && (!ok || s.score < lowest) {
			victim, lowest, ok = other, s.score, true
		}
	}
	return victim, ok && (always || rate > 2*lowest)
}

// Bytes returns the memory of all rings.
func (r *Recorder) Bytes() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.series {
		for i := range s.rings {
			n += 4 * cap(s.rings[i].Values)
		}
	}
	return n
}

// allKeys returns all keys.
func (r *Recorder) allKeys() []Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.series))
}
