package sharded

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"freshet/internal/storage/engine"
)

// groupJournalPrefix is the prefix of the names of consumer groups' journals; a number follows.
const groupJournalPrefix = "groups-"

// JournalShard returns the shard in which a journal is stored, given the number of shards.
// ok is false for a journal of all members.
func JournalShard(name string, shards int) (shard int, ok bool) {
	number, ok := strings.CutPrefix(name, groupJournalPrefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 {
		return 0, false
	}
	return n % shards, true
}

// Journal implements engine.Engine.
func (e *Engine) Journal(ctx context.Context, name string) (engine.Journal, error) {
	shard, ok := JournalShard(name, len(e.shards))
	if !ok {
		return e.opts.Journals.Journal(ctx, name)
	}
	owned, err := e.shards[shard].Engine()
	if err != nil {
		return nil, fmt.Errorf("journal %q is in shard %d: %w", name, shard, err)
	}
	return owned.Journal(ctx, name)
}
