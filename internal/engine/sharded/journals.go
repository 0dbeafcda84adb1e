package sharded

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"freshet/internal/engine"
)

// groupJournals is how the names of journals of consumer groups begin; a number
// follows.
const groupJournals = "groups-"

// journalShard returns the shard that a journal is stored in; ok is false for a
// journal of all members.
func (e *Engine) journalShard(name string) (shard int, ok bool) {
	number, ok := strings.CutPrefix(name, groupJournals)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 {
		return 0, false
	}
	return n % len(e.shards), true
}

// Journal implements engine.Engine.
func (e *Engine) Journal(ctx context.Context, name string) (engine.Journal, error) {
	shard, ok := e.journalShard(name)
	if !ok {
		return e.opts.Journals(ctx, name)
	}
	owned, err := e.shards[shard].Engine()
	if err != nil {
		return nil, fmt.Errorf("journal %s is in shard %d: %w", name, shard, err)
	}
	return owned.Journal(ctx, name)
}
