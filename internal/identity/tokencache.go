package identity

import (
	"crypto/sha256"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// atomicStamp is the time of an entry's last use in seconds.
type atomicStamp struct{ seconds atomic.Int64 }

func (s *atomicStamp) touch(now time.Time) {
	// Most hits find the current second and write nothing, so that cores can share the
	// cache line.
	if sec := now.Unix(); s.seconds.Load() != sec {
		s.seconds.Store(sec)
	}
}

const (
	cacheShards = 64
	// cacheSample is how many entries an eviction examines. The least recently used of a
	// small random sample is nearly as good as that of all entries, and a hit has no list
	// to maintain under a lock.
	cacheSample = 8
)

// tokenCache is a bounded, sharded cache of verified tokens by their SHA-256. It does not
// use package lru, because a hit must not write to memory that other cores share
// (BenchmarkVerify, parallel hits).
type tokenCache struct {
	perShard int
	shards   [cacheShards]cacheShard
}

type cacheShard struct {
	mu      sync.RWMutex // protects the map, not the entries, which are immutable or atomic
	entries map[[sha256.Size]byte]*entry
	_       [24]byte // padding, so that each shard has its own cache line
}

func newTokenCache(size int) *tokenCache {
	c := &tokenCache{perShard: max(1, size/cacheShards)}
	for i := range c.shards {
		c.shards[i].entries = make(map[[sha256.Size]byte]*entry)
	}
	return c
}

func (c *tokenCache) shard(hash [sha256.Size]byte) *cacheShard { return &c.shards[hash[0]%cacheShards] }

func (c *tokenCache) get(hash [sha256.Size]byte, now time.Time) *entry {
	s := c.shard(hash)
	s.mu.RLock()
	e := s.entries[hash]
	s.mu.RUnlock()
	if e != nil {
		e.used.touch(now)
	}
	return e
}

func (c *tokenCache) put(hash [sha256.Size]byte, e *entry, now time.Time) {
	e.used.touch(now)
	s := c.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.entries[hash]; !ok && len(s.entries) >= c.perShard {
		s.evictLocked(now)
	}
	s.entries[hash] = e
}

// evictLocked removes the invalid entries of a sample, or else the least recently used
// one. The sample is random, because map iteration starts at a random entry.
func (s *cacheShard) evictLocked(now time.Time) {
	var oldest [sha256.Size]byte
	oldestUsed, seen, removed := int64(math.MaxInt64), 0, false
	for hash, e := range s.entries {
		if e.check(now) != nil {
			delete(s.entries, hash)
			removed = true
		} else if used := e.used.seconds.Load(); used < oldestUsed {
			oldest, oldestUsed = hash, used
		}
		if seen++; seen == cacheSample {
			break
		}
	}
	if !removed {
		delete(s.entries, oldest)
	}
}

func (c *tokenCache) drop(hash [sha256.Size]byte) {
	s := c.shard(hash)
	s.mu.Lock()
	delete(s.entries, hash)
	s.mu.Unlock()
}

func (c *tokenCache) len() int {
	n := 0
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.RLock()
		n += len(s.entries)
		s.mu.RUnlock()
	}
	return n
}
