package history

import (
	"cmp"
	"context"
	"slices"
	"time"

	"freshet/internal/broker/messaging"
	"freshet/internal/storage/engine"
)

// Limits of the work of one sample, so that its cost does not grow with the number of topics.
const (
	scanTopics    = 10_000 // topics that are looked at, over all clusters
	minScanTopics = 500    // of each cluster
	admissions    = 200    // series of each kind that replace others, over all clusters
	minAdmissions = 10     // of each cluster
	sampleTimeout = 10 * time.Second
)

// sampler takes the samples.
type sampler struct {
	recorder   *Recorder
	clusters   map[string]*clusterScan // by uid
	admissions int                     // of each kind and cluster
}

// clusterScan looks for busy topics of a cluster. It passes over all topics, a page with each sample.
type clusterScan struct {
	after    engine.TopicID
	began    time.Time     // of this pass
	interval time.Duration // between two looks at the same topic
	seen     bool          // in this sample
	samples  int
	sum      gauges // of this pass so far
	last     gauges // of the last complete pass
}

type gauges struct {
	known           bool
	backlog, stored float64
}

// sample takes a sample of all clusters.
func (p *sampler) sample(ctx context.Context, at time.Time) {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	p.recorder.decay(at)
	sources := p.recorder.opts.Clusters()
	page := max(minScanTopics, scanTopics/max(1, len(sources)))
	p.admissions = max(minAdmissions, admissions/max(1, len(sources)))
	for _, scan := range p.clusters {
		scan.seen = false
	}
	for i := range sources {
		c := &sources[i]
		scan := p.clusters[c.UID]
		if scan == nil {
			scan = &clusterScan{}
			p.clusters[c.UID] = scan
		}
		scan.seen = true
		if ctx.Err() != nil {
			continue // the rest has a gap
		}
		p.scan(ctx, at, c, scan, page)
		p.sampleCluster(at, c, scan)
		usage := p.sampleTopics(ctx, at, c)
		p.sampleSubscriptions(ctx, at, c, usage)
		p.sampleGroups(ctx, at, c, scan)
	}
	for uid, scan := range p.clusters {
		if !scan.seen {
			delete(p.clusters, uid)
		}
	}
}

// candidate is a key without a series that was used since the last look at it.
type candidate struct {
	key  Key
	rate float64
}

// admit gives the busiest candidates, all of one kind, a series as far as there is room for them.
func (p *sampler) admit(candidates []candidate) {
	slices.SortFunc(candidates, func(a, b candidate) int { return cmp.Compare(b.rate, a.rate) })
	if len(candidates) == 0 {
		return
	}
	limit := p.recorder.room(candidates[0].key.Kind) + p.admissions
	for _, c := range candidates[:min(len(candidates), limit)] {
		if p.recorder.admit(c.key, c.rate) == nil {
			return // nor is there room for those that are less busy
		}
	}
}

// scan looks at the next page of a cluster's topics, and admits those that are busy.
func (p *sampler) scan(ctx context.Context, at time.Time, c *Source, scan *clusterScan, page int) {
	scan.samples++
	if scan.after == 0 {
		if scan.interval = at.Sub(scan.began); scan.began.IsZero() {
			scan.interval = sampleEvery
		}
		scan.began, scan.sum = at, gauges{known: true}
	}
	var ids []engine.TopicID
	var busy []candidate
	last := c.Statistics.Scan(scan.after, page, func(id engine.TopicID, moved int64) {
		ids = append(ids, id)
		key := Key{Kind: Topic, Cluster: c.UID, Topic: uint64(id)}
		if moved > 0 && p.recorder.find(key) == nil {
			busy = append(busy, candidate{key, float64(moved) / scan.interval.Seconds()})
		}
	})
	p.admit(busy)
	err := c.Statistics.UsageOf(ctx, ids, func(u engine.Usage) {
		scan.sum.backlog += float64(u.Backlog)
		scan.sum.stored += float64(u.Stored)
	})
	if err != nil {
		scan.sum.known = false
	}
	if scan.after = last; last == 0 {
		scan.last = scan.sum
	}
}

func (p *sampler) sampleCluster(at time.Time, c *Source, scan *clusterScan) {
	key := Key{Kind: Cluster, Cluster: c.UID}
	s := p.recorder.admit(key, 1)
	if s == nil {
		return
	}
	v, rate := s.rates(at, c.Statistics.ClusterActivity(), true)
	if scan.last.known {
		v[valueBacklog], v[valueStored] = float32(scan.last.backlog), float32(scan.last.stored)
	}
	p.recorder.record(key, at, &v, rate)
}

// sampleTopics samples the topics that have a series, and returns the usage of those that this server
// owns and has in memory or remembers.
func (p *sampler) sampleTopics(ctx context.Context, at time.Time, c *Source) map[engine.TopicID]engine.Usage {
	keys := p.recorder.keys(Topic, c.UID)
	ids := make([]engine.TopicID, len(keys))
	for i, key := range keys {
		ids[i] = engine.TopicID(key.Topic)
	}
	usage := make(map[engine.TopicID]engine.Usage, len(ids))
	// After an error the backlogs that are missing are unknown.
	_ = c.Statistics.UsageOf(ctx, ids, func(u engine.Usage) { usage[u.Topic] = u })
	for i, key := range keys {
		s := p.recorder.find(key)
		if s == nil {
			continue
		}
		if !c.Statistics.Exists(ids[i]) {
			p.recorder.remove(key)
			continue
		}
		activity, used := c.Statistics.TopicActivity(ids[i])
		u, owned := usage[ids[i]]
		v, rate := s.rates(at, activity, used || owned)
		if owned {
			v[valueBacklog], v[valueStored] = float32(u.Backlog), float32(u.Stored)
		}
		p.recorder.record(key, at, &v, rate)
	}
	return usage
}

// rates returns a sample with the rates since the last one, and their sum. They are unknown after a
// start, and when a counter has started again. Run calls it once for each sample.
func (s *series) rates(at time.Time, now messaging.Activity, used bool) (v sample, rate float64) {
	v = unknownSample()
	b := &s.before
	in, out, errors := now.In, now.Out, now.Errors
	elapsed := at.Sub(b.at).Seconds()
	if !b.at.IsZero() && elapsed > 0 && used && in >= b.in && out >= b.out && errors >= b.errors {
		v[valueIn] = float32(float64(in-b.in) / elapsed)
		v[valueOut] = float32(float64(out-b.out) / elapsed)
		v[valueErrors] = float32(float64(errors-b.errors) / elapsed)
		rate = float64(in-b.in+out-b.out+errors-b.errors) / elapsed
	}
	b.at, b.in, b.out, b.errors = at, in, out, errors
	return v, rate
}
