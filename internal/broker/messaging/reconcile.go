package messaging

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"freshet/internal/base/names"
	"freshet/internal/storage/engine"
)

// A topic exists when the catalogue's journal says so. The engine follows: it
// is told after the journal, and what it was not told because of a crash, or
// because another replica is a moment behind, is made up for here.

const listPage = 10_000

// reconcile makes an engine have exactly those topics of the catalogue that are its
// own, and finishes changes of rules that were cut short.
func (b *Broker) reconcile(ctx context.Context, eng engine.Engine, own func(engine.TopicID) bool) error {
	// The engine first: a topic it has was in the journal before, so when the
	// fresh catalogue does not know it, it was dropped.
	inEngine := make(map[engine.TopicID]struct{})
	for after := engine.TopicID(0); ; {
		ids, err := eng.ListTopics(ctx, after, listPage)
		if err != nil {
			return fmt.Errorf("listing the engine's topics: %w", err)
		}
		for _, id := range ids {
			inEngine[id] = struct{}{}
		}
		if len(ids) < listPage {
			break
		}
		after = ids[len(ids)-1]
	}
	c, err := b.catalogue.Fresh(ctx)
	if err != nil {
		return err
	}
	for id := range inEngine {
		if _, ok := c.byID.Get(id); !ok {
			b.log.LogAttrs(ctx, slog.LevelInfo, "removing a topic that was deleted before a restart",
				slog.Uint64("topic", uint64(id)))
			if err := b.dropFromEngine(ctx, eng, id); err != nil {
				return err
			}
		}
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(configureWorkers)
	var pending []names.Namespace
	c.byID.Scan(func(id engine.TopicID, t *topic) bool {
		if !own(id) {
			return true
		}
		if _, ok := inEngine[id]; !ok {
			group.Go(func() error { return b.ensure(gctx, eng, id) })
		}
		if t.pending != 0 {
			group.Go(func() error { return b.configure(gctx, eng, id, t.pending) })
		}
		return gctx.Err() == nil
	})
	c.namespaces.Scan(func(n *namespace) bool {
		if n.pending != 0 {
			pending = append(pending, n.name)
		}
		return true
	})
	if err := group.Wait(); err != nil {
		return err
	}
	for _, name := range pending {
		b.work.Go(func() { b.configureNamespace(b.ctx, name) })
	}
	return nil
}

// ensure makes the engine have a topic of the catalogue.
func (b *Broker) ensure(ctx context.Context, eng engine.Topics, id engine.TopicID) error {
	mu := b.topicLock(id)
	mu.Lock()
	defer mu.Unlock()
	name, config, ok := b.engineConfig(id)
	if !ok {
		return ErrNoTopic
	}
	if err := eng.CreateTopic(ctx, id, config); err != nil && !errors.Is(err, engine.ErrTopicExists) {
		return fmt.Errorf("creating topic %s: %w", name, err)
	}
	return nil
}

// engineConfig is what the engine has to know of a topic by the catalogue as it
// is now.
func (b *Broker) engineConfig(id engine.TopicID) (names.Topic, engine.TopicConfig, bool) {
	c := b.catalogue.View()
	t, ok := c.byID.Get(id)
	if !ok {
		return names.Topic{}, engine.TopicConfig{}, false
	}
	r := c.rules(t, &b.limits)
	return t.name, r.config(t), true
}

// configureEngine gives the engine the rules in force for a topic.
func (b *Broker) configureEngine(ctx context.Context, eng engine.Topics, id engine.TopicID) error {
	mu := b.topicLock(id)
	mu.Lock()
	defer mu.Unlock()
	name, config, ok := b.engineConfig(id)
	if !ok {
		return nil // dropped meanwhile
	}
	err := eng.ConfigureTopic(ctx, id, config)
	if errors.Is(err, engine.ErrNoTopic) {
		err = eng.CreateTopic(ctx, id, config)
	}
	if err != nil {
		return fmt.Errorf("configuring topic %s: %w", name, err)
	}
	return nil
}

// configure gives the engine the rules of a topic and notes that it did.
func (b *Broker) configure(ctx context.Context, eng engine.Topics, id engine.TopicID, position uint64) error {
	if err := b.configureEngine(ctx, eng, id); err != nil {
		return err
	}
	_, err := b.catalogue.Update(ctx, func(c *catalogue) ([][]byte, error) {
		if t, ok := c.byID.Get(id); !ok || t.pending != position {
			return nil, nil
		}
		return [][]byte{record{Op: opConfigured, ID: id, Position: position}.encode()}, nil
	})
	return err
}

const (
	configureWorkers = 8
	configureWait    = 2 * time.Second
)

// configureNamespace gives the engine the rules of every topic of a namespace
// and notes that it did. It tries until it succeeds or the broker closes.
func (b *Broker) configureNamespace(ctx context.Context, name names.Namespace) {
	for delay := 100 * time.Millisecond; ; delay = min(2*delay, 30*time.Second) {
		err := b.tryConfigureNamespace(ctx, name)
		if err == nil || ctx.Err() != nil || errors.Is(err, engine.ErrClosed) {
			return
		}
		b.log.LogAttrs(ctx, slog.LevelWarn,
			"new policies of a namespace could not be given to the engine; trying again",
			slog.String("namespace", name.String()), slog.String("error", err.Error()))
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return
		}
	}
}

func (b *Broker) tryConfigureNamespace(ctx context.Context, name names.Namespace) error {
	c := b.catalogue.View()
	ns, ok := c.namespace(name)
	if !ok || ns.pending == 0 {
		return nil
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(configureWorkers)
	c.topicsOf(name, func(t *topic) bool {
		group.Go(func() error { return b.configureEngine(gctx, b.engine, t.id) })
		return gctx.Err() == nil
	})
	if err := group.Wait(); err != nil {
		return err
	}
	_, err := b.catalogue.Update(ctx, func(c *catalogue) ([][]byte, error) {
		if now, ok := c.namespace(name); !ok || now.pending != ns.pending {
			return nil, nil
		}
		return [][]byte{record{Op: opConfiguredSpace, Name: name.String(), Position: ns.pending}.encode()}, nil
	})
	return err
}

// announceNamespace starts configureNamespace and waits a little for it, so
// that in a namespace of ordinary size a policy is in force on return.
func (b *Broker) announceNamespace(ctx context.Context, name names.Namespace) {
	finished := make(chan struct{})
	b.work.Go(func() {
		defer close(finished)
		b.configureNamespace(b.ctx, name)
	})
	timer := time.NewTimer(configureWait)
	defer timer.Stop()
	select {
	case <-finished:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// dropFromEngine removes a topic that the catalogue does not have any more.
func (b *Broker) dropFromEngine(ctx context.Context, eng engine.Topics, id engine.TopicID) error {
	mu := b.topicLock(id)
	mu.Lock()
	defer mu.Unlock()
	if err := eng.DeleteTopic(ctx, id); err != nil && !errors.Is(err, engine.ErrNoTopic) {
		return fmt.Errorf("removing topic %d: %w", id, err)
	}
	b.forget(id, ErrNoTopic)
	return nil
}

// forget drops what is remembered of a topic, and tells its streams why.
func (b *Broker) forget(id engine.TopicID, why error) {
	l, ok := b.live.LoadAndDelete(id)
	if !ok {
		return
	}
	live := l.(*liveTopic)
	live.left.Store(true)
	live.subs.Range(func(name, _ any) bool {
		live.endSubscription(name.(string), why)
		return true
	})
}

// withTopic runs op and, when the engine does not know the topic or partition
// although the catalogue does, tells it and runs op once more.
func (b *Broker) withTopic(ctx context.Context, id engine.TopicID, op func() error) error {
	err := op()
	if !errors.Is(err, engine.ErrNoTopic) && !errors.Is(err, engine.ErrNoPartition) {
		return err
	}
	return b.repair(ctx, id, op)
}

func (b *Broker) repair(ctx context.Context, id engine.TopicID, op func() error) error {
	c, err := b.catalogue.Fresh(ctx)
	if err != nil {
		return err
	}
	if _, ok := c.byID.Get(id); !ok {
		return ErrNoTopic
	}
	if err := b.configureEngine(ctx, b.engine, id); err != nil {
		return err
	}
	return op()
}
