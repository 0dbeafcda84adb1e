package messaging

import (
	"context"
	"runtime"
	"sync"
	"time"

	"freshet/internal/base/lru"
	"freshet/internal/broker/filter"
	"freshet/internal/storage/engine"
)

// subscriptionFilters evaluates the filters of subscriptions for the engine, which reads the messages. It is
// the engine.Selector of the broker.
type subscriptionFilters struct {
	searcher *Searcher
	live     *liveTopics
	cache    *lru.Cache[filterKey, *cachedFilter]
}

// filterKey identifies a filter of the subscriptions of a topic.
type filterKey struct {
	topic engine.TopicID
	text  string
}

// maxCachedFilters bounds the compiled filters in memory.
const maxCachedFilters = 1024

func newFilterCache() *lru.Cache[filterKey, *cachedFilter] {
	return lru.New[filterKey, *cachedFilter](maxCachedFilters)
}

// cachedFilter is a compiled filter with idle evaluators, which remember schemas.
type cachedFilter struct {
	filter *filter.Filter
	err    error // the stored text is not valid in this version of the server

	mu   sync.Mutex
	idle []schemaEvaluator
}

// schemaEvaluator is an evaluator for one version of a topic.
type schemaEvaluator struct {
	*filter.Evaluator
	topic *topic
	since time.Time
}

// Select implements engine.Selector. It reads and evaluates with a permit of the pool, as a search does.
func (f *subscriptionFilters) Select(ctx context.Context, timeout time.Duration, id engine.TopicID, text string,
	read func(engine.Evaluate) error,
) error {
	t, err := f.topic(ctx, id)
	if err != nil {
		return err
	}
	cached := f.compiled(filterKey{id, text})
	if cached.err != nil { // a failure of each message, which is delivered
		return read(func(*engine.Record) engine.Verdict { return engine.Failed })
	}
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return f.searcher.withPermit(waiting, func() error {
		evaluator := cached.take(ctx, t, f.searcher.registry)
		defer cached.put(evaluator)
		return read(func(r *engine.Record) engine.Verdict {
			received := f.searcher.consumer.received(t, r)
			matched, err := evaluator.Match(received.filterMessage())
			switch {
			case err != nil:
				return engine.Failed
			case matched:
				return engine.Selected
			}
			return engine.PassedOver
		})
	})
}

// PassedOver implements engine.Selector.
func (f *subscriptionFilters) PassedOver(id engine.TopicID, messages int) {
	f.live.of(id).passedOver.addMany(messages, 0)
}

// topic returns a topic of the catalogue. The catalogue of this member may be behind the one of the member
// that created the topic.
func (f *subscriptionFilters) topic(ctx context.Context, id engine.TopicID) (*topic, error) {
	state := f.searcher.consumer.catalogue.state
	if t, ok := state.View().byID.Get(id); ok {
		return t, nil
	}
	fresh, err := state.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	if t, ok := fresh.byID.Get(id); ok {
		return t, nil
	}
	return nil, ErrNoTopic
}

func (f *subscriptionFilters) compiled(key filterKey) *cachedFilter {
	if found, ok := f.cache.Get(key); ok {
		return found
	}
	out := &cachedFilter{}
	out.filter, out.err = filter.Compile(key.text)
	return f.cache.Add(key, out, 1)
}

// take returns an evaluator for a version of the topic. It is not used for longer than schemasAge.
func (c *cachedFilter) take(ctx context.Context, t *topic, registry SchemaRegistry) schemaEvaluator {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.idle) > 0 {
		last := c.idle[len(c.idle)-1]
		c.idle = c.idle[:len(c.idle)-1]
		if last.topic == t && time.Since(last.since) < schemasAge {
			last.WithContext(ctx)
			return last
		}
	}
	return schemaEvaluator{c.filter.Evaluator(ctx, payloadSchemas{t, registry}), t, time.Now()}
}

// put keeps an evaluator for the next call. Not more are used at a time than there are processors.
func (c *cachedFilter) put(e schemaEvaluator) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.idle) < runtime.GOMAXPROCS(0) {
		e.WithContext(context.Background())
		c.idle = append(c.idle, e)
	}
}
