package schemas

import (
	"container/list"
	"sync"
)

// cache keeps parsed schemas up to a number of bytes, the least recently used
// leaving first. Parsed forms cost several times their text, and start-up
// parses none.
type cache struct {
	mu      sync.Mutex
	limit   int64
	size    int64
	entries map[cacheKey]*list.Element
	recent  *list.List // of *cacheEntry, most recently used first
}

type cacheKey [32]byte

type cacheEntry struct {
	key  cacheKey
	form form
	cost int64
}

func newCache(limit int64) *cache {
	return &cache{limit: limit, entries: make(map[cacheKey]*list.Element), recent: list.New()}
}

func (c *cache) get(key cacheKey) (form, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if !ok {
		return nil, false
	}
	c.recent.MoveToFront(e)
	return e.Value.(*cacheEntry).form, true // the list holds nothing else
}

// put adds a form whose text has this many bytes.
func (c *cache) put(key cacheKey, f form, textBytes int) {
	cost := 1024 + 10*int64(textBytes)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.entries[key]; ok || cost > c.limit {
		return
	}
	c.entries[key] = c.recent.PushFront(&cacheEntry{key: key, form: f, cost: cost})
	c.size += cost
	for c.size > c.limit {
		oldest := c.recent.Back()
		e := c.recent.Remove(oldest).(*cacheEntry) // the list holds nothing else
		delete(c.entries, e.key)
		c.size -= e.cost
	}
}
