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

// The catalogue's journal decides which topics exist. The engine is updated after the journal. The
// functions in this file repair the engine when a crash, or a member whose catalogue is behind,
// left it without an update.

const listPage = 10_000

// reconcile makes the topics of an engine equal to those of the catalogue for which own returns
// true, and completes interrupted changes of rules.
func (b *Broker) reconcile(ctx context.Context, eng engine.Engine, own func(engine.TopicID) bool) error {
	// List the engine's topics first: a topic is in the journal before it is in the engine, so a
	// topic that the fresh catalogue lacks was deleted.
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
			b.log.LogAttrs(ctx, slog.LevelInfo, "removing the data of a topic that was deleted before the restart",
				slog.Uint64("topic", uint64(id)))
			if err := b.dropFromEngine(ctx, eng, id); err != nil {
				return err
			}
		}
	}
	workers, gctx := errgroup.WithContext(ctx)
	workers.SetLimit(configureWorkers)
	var pending []names.Namespace
	c.byID.Scan(func(id engine.TopicID, t *topic) bool {
		if !own(id) {
			return true
		}
		if _, ok := inEngine[id]; !ok {
			workers.Go(func() error { return b.ensureInEngine(gctx, eng, id) })
		}
		if t.pending != 0 {
			workers.Go(func() error { return b.configure(gctx, eng, id, t.pending) })
		}
		return gctx.Err() == nil
	})
	c.namespaces.Scan(func(n *namespace) bool {
		if n.pending != 0 {
			pending = append(pending, n.name)
		}
		return true
	})
	if err := workers.Wait(); err != nil {
		return err
	}
	for _, name := range pending {
		b.work.Go(func() { b.configureNamespace(b.ctx, name) })
	}
	return nil
}

// ensureInEngine creates a topic of the catalogue in the engine if the engine lacks it.
func (b *Broker) ensureInEngine(ctx context.Context, eng engine.Topics, id engine.TopicID) error {
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

// engineConfig returns the engine's configuration of a topic according to the current catalogue.
func (b *Broker) engineConfig(id engine.TopicID) (names.Topic, engine.TopicConfig, bool) {
	c := b.catalogue.View()
	t, ok := c.byID.Get(id)
	if !ok {
		return names.Topic{}, engine.TopicConfig{}, false
	}
	r := c.rules(t, &b.limits)
	return t.name, r.config(t), true
}

// configureEngine passes the effective rules of a topic to the engine.
func (b *Broker) configureEngine(ctx context.Context, eng engine.Topics, id engine.TopicID) error {
	mu := b.topicLock(id)
	mu.Lock()
	defer mu.Unlock()
	name, config, ok := b.engineConfig(id)
	if !ok {
		return nil // deleted in the meantime
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

// configure passes the rules of a topic to the engine and records in the journal that it did.
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
	configureWorkers          = 8
	namespaceConfigureTimeout = 2 * time.Second
)

// configureNamespace passes the rules of every topic of a namespace to the engine and records in
// the journal that it did. It retries with backoff until it succeeds or the broker closes.
func (b *Broker) configureNamespace(ctx context.Context, name names.Namespace) {
	for delay := 100 * time.Millisecond; ; delay = min(2*delay, 30*time.Second) {
		err := b.tryConfigureNamespace(ctx, name)
		if err == nil || ctx.Err() != nil || errors.Is(err, engine.ErrClosed) {
			return
		}
		b.log.LogAttrs(ctx, slog.LevelWarn, "passing new namespace policies to the engine failed; retrying",
			slog.String("namespace", name.String()), slog.Any("error", err))
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
	workers, gctx := errgroup.WithContext(ctx)
	workers.SetLimit(configureWorkers)
	c.topicsOf(name, func(t *topic) bool {
		workers.Go(func() error { return b.configureEngine(gctx, b.engine, t.id) })
		return gctx.Err() == nil
	})
	if err := workers.Wait(); err != nil {
		return err
	}
	_, err := b.catalogue.Update(ctx, func(c *catalogue) ([][]byte, error) {
		if now, ok := c.namespace(name); !ok || now.pending != ns.pending {
			return nil, nil
		}
		return [][]byte{record{Op: opConfiguredNamespace, Name: name.String(), Position: ns.pending}.encode()}, nil
	})
	return err
}

// startConfigureNamespace starts configureNamespace and waits for it up to namespaceConfigureTimeout, so that in a
// namespace of ordinary size the policy is in effect on return.
func (b *Broker) startConfigureNamespace(ctx context.Context, name names.Namespace) {
	finished := make(chan struct{})
	b.work.Go(func() {
		defer close(finished)
		b.configureNamespace(b.ctx, name)
	})
	timer := time.NewTimer(namespaceConfigureTimeout)
	defer timer.Stop()
	select {
	case <-finished:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// dropFromEngine removes a topic that the catalogue no longer has.
func (b *Broker) dropFromEngine(ctx context.Context, eng engine.Topics, id engine.TopicID) error {
	mu := b.topicLock(id)
	mu.Lock()
	defer mu.Unlock()
	if err := eng.DeleteTopic(ctx, id); err != nil && !errors.Is(err, engine.ErrNoTopic) {
		return fmt.Errorf("removing topic %d: %w", id, err)
	}
	b.dropState(id, ErrNoTopic)
	return nil
}

// dropState removes the in-memory state of a topic and ends its push consumers with an error.
func (b *Broker) dropState(id engine.TopicID, why error) {
	l, ok := b.live.LoadAndDelete(id)
	if !ok {
		return
	}
	live := l.(*liveTopic)
	live.disowned.Store(true)
	live.subs.Range(func(name, _ any) bool {
		live.endSubscription(name.(string), why)
		return true
	})
}

// withTopic calls op. When the engine lacks the topic or partition although the catalogue has it,
// withTopic creates it and calls op again.
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
