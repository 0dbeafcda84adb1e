package messaging

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"freshet/internal/base/names"
	"freshet/internal/base/retry"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/statemachine"
)

// engineTopics keeps the topics of the engine equal to those of the catalogue. The catalogue's journal
// decides which topics exist, and the engine is updated after the journal. engineTopics repairs the
// engine when a crash, or a member whose catalogue is behind, left it without an update.
type engineTopics struct {
	engine engine.Topics
	state  *statemachine.Machine[*catalogueState]
	limits *Limits
	live   *liveTopics
	life   *lifecycle
	log    *slog.Logger
	locks  [64]sync.Mutex // by topic id; see topicLock
}

const listPage = 10_000

// reconcile makes the topics of an engine equal to those of the catalogue for which own returns
// true, and completes interrupted changes of rules.
func (e *engineTopics) reconcile(ctx context.Context, eng engine.Topics, own func(engine.TopicID) bool) error {
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
	c, err := e.state.Fresh(ctx)
	if err != nil {
		return err
	}
	for id := range inEngine {
		if _, ok := c.byID.Get(id); !ok {
			e.log.LogAttrs(ctx, slog.LevelInfo, "removing the data of a topic that was deleted before the restart",
				slog.Uint64("topic", uint64(id)))
			if err := e.dropFromEngine(ctx, eng, id); err != nil {
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
			workers.Go(func() error { return e.ensureInEngine(gctx, eng, id) })
		}
		if t.pending != 0 {
			workers.Go(func() error { return e.configure(gctx, eng, id, t.pending) })
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
		e.life.work.Go(func() { e.configureNamespace(e.life.ctx, name) })
	}
	return nil
}

// ensureInEngine creates a topic of the catalogue in the engine if the engine lacks it.
func (e *engineTopics) ensureInEngine(ctx context.Context, eng engine.Topics, id engine.TopicID) error {
	mu := e.topicLock(id)
	mu.Lock()
	defer mu.Unlock()
	name, config, ok := e.engineConfig(id)
	if !ok {
		return ErrNoTopic
	}
	if err := eng.CreateTopic(ctx, id, config); err != nil && !errors.Is(err, engine.ErrTopicExists) {
		return fmt.Errorf("creating topic %s: %w", name, err)
	}
	return nil
}

// engineConfig returns the engine's configuration of a topic according to the current catalogue.
func (e *engineTopics) engineConfig(id engine.TopicID) (names.Topic, engine.TopicConfig, bool) {
	c := e.state.View()
	t, ok := c.byID.Get(id)
	if !ok {
		return names.Topic{}, engine.TopicConfig{}, false
	}
	r := c.rules(t, e.limits)
	return t.name, r.config(t), true
}

// configureEngine passes the effective rules of a topic to the engine.
func (e *engineTopics) configureEngine(ctx context.Context, eng engine.Topics, id engine.TopicID) error {
	mu := e.topicLock(id)
	mu.Lock()
	defer mu.Unlock()
	name, config, ok := e.engineConfig(id)
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
func (e *engineTopics) configure(ctx context.Context, eng engine.Topics, id engine.TopicID, position uint64) error {
	if err := e.configureEngine(ctx, eng, id); err != nil {
		return err
	}
	_, err := e.state.Update(ctx, func(c *catalogueState) ([][]byte, error) {
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
func (e *engineTopics) configureNamespace(ctx context.Context, name names.Namespace) {
	for backoff := (retry.Backoff{Min: 100 * time.Millisecond, Max: 30 * time.Second}); ; {
		err := e.tryConfigureNamespace(ctx, name)
		if err == nil || ctx.Err() != nil || errors.Is(err, engine.ErrClosed) {
			return
		}
		e.log.LogAttrs(ctx, slog.LevelWarn, "passing new namespace policies to the engine failed; retrying",
			slog.String("namespace", name.String()), slog.Any("error", err))
		if backoff.Sleep(ctx) != nil {
			return
		}
	}
}

func (e *engineTopics) tryConfigureNamespace(ctx context.Context, name names.Namespace) error {
	c := e.state.View()
	ns, ok := c.namespace(name)
	if !ok || ns.pending == 0 {
		return nil
	}
	workers, gctx := errgroup.WithContext(ctx)
	workers.SetLimit(configureWorkers)
	c.topicsOf(name, func(t *topic) bool {
		workers.Go(func() error { return e.configureEngine(gctx, e.engine, t.id) })
		return gctx.Err() == nil
	})
	if err := workers.Wait(); err != nil {
		return err
	}
	_, err := e.state.Update(ctx, func(c *catalogueState) ([][]byte, error) {
		if now, ok := c.namespace(name); !ok || now.pending != ns.pending {
			return nil, nil
		}
		return [][]byte{record{Op: opConfiguredNamespace, Name: name.String(), Position: ns.pending}.encode()}, nil
	})
	return err
}

// startConfigureNamespace starts configureNamespace and waits for it up to namespaceConfigureTimeout, so that in a
// namespace of ordinary size the policy is in effect on return.
func (e *engineTopics) startConfigureNamespace(ctx context.Context, name names.Namespace) {
	finished := make(chan struct{})
	e.life.work.Go(func() {
		defer close(finished)
		e.configureNamespace(e.life.ctx, name)
	})
	_ = retry.Wait(ctx, finished, namespaceConfigureTimeout)
}

// dropFromEngine removes a topic that the catalogue no longer has.
func (e *engineTopics) dropFromEngine(ctx context.Context, eng engine.Topics, id engine.TopicID) error {
	mu := e.topicLock(id)
	mu.Lock()
	defer mu.Unlock()
	if err := eng.DeleteTopic(ctx, id); err != nil && !errors.Is(err, engine.ErrNoTopic) {
		return fmt.Errorf("removing topic %d: %w", id, err)
	}
	e.live.drop(id, ErrNoTopic)
	return nil
}

// withTopic calls op. When the engine lacks the topic or partition although the catalogue has it,
// withTopic creates it and calls op again.
func (e *engineTopics) withTopic(ctx context.Context, id engine.TopicID, op func() error) error {
	err := op()
	if !errors.Is(err, engine.ErrNoTopic) && !errors.Is(err, engine.ErrNoPartition) {
		return err
	}
	return e.repair(ctx, id, op)
}

// onTopic is withTopic for a call that returns a value.
func onTopic[T any](ctx context.Context, e *engineTopics, id engine.TopicID, op func() (T, error)) (T, error) {
	var result T
	err := e.withTopic(ctx, id, func() (err error) {
		result, err = op()
		return err
	})
	return result, err
}

func (e *engineTopics) repair(ctx context.Context, id engine.TopicID, op func() error) error {
	if err := e.configureExisting(ctx, e.engine, id); err != nil {
		return err
	}
	return op()
}

// configureExisting is configureEngine with an up-to-date catalogue. It returns ErrNoTopic for a topic
// that the catalogue does not have.
func (e *engineTopics) configureExisting(ctx context.Context, eng engine.Topics, id engine.TopicID) error {
	c, err := e.state.Fresh(ctx)
	if err != nil {
		return err
	}
	if _, ok := c.byID.Get(id); !ok {
		return ErrNoTopic
	}
	return e.configureEngine(ctx, eng, id)
}

// describe returns the engine's statistics of a topic.
func (e *engineTopics) describe(ctx context.Context, t *topic) (engine.TopicStats, error) {
	return onTopic(ctx, e, t.id, func() (engine.TopicStats, error) { return e.engine.DescribeTopic(ctx, t.id) })
}

// topicLock returns the lock that is held while the engine's configuration of a topic changes.
func (e *engineTopics) topicLock(id engine.TopicID) *sync.Mutex {
	return &e.locks[uint64(id)%uint64(len(e.locks))]
}
