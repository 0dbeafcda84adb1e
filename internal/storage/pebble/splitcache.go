package pebble

import (
	"container/list"
	"sync"

	"freshet/internal/base/fairshare"
	"freshet/internal/base/unpacking"
)

// splitCache holds decoded windows of batches, of all stores that share a Cache. Its limit is a part
// of the budget for unpacked bytes, and each window counts with all memory that it holds.
//
// When the cache is full it evicts the least recently used window of the organization that uses the
// most memory, and within it of the principal that uses the most. So one caller cannot evict the
// windows of others that use less, who would have to decompress their batches again.
type splitCache struct {
	budget      *unpacking.Budget
	limit       int64
	windowBytes int64 // size of a window, if its reader is kept

	mu            sync.Mutex // protects the fields below, and splitWindow.reader of cached windows
	bytes         int64
	windows       map[splitKey][]*splitWindow
	owners        map[fairshare.Caller]*splitOwner
	organizations map[string]int64 // bytes by organization
}

// splitOwner is a caller with windows in the cache.
type splitOwner struct {
	fairshare.Caller
	bytes   int64
	windows list.List // of *splitWindow, the most recently used first
}

// cacheEntry is the place of a window in the cache. splitCache.mu protects it.
type cacheEntry struct {
	owner   *splitOwner
	element *list.Element // nil when the window is not in the cache
	bytes   int64         // with the reader
}

const (
	// maxWindowBytes is the size of a window of a cache that is not small.
	maxWindowBytes = 256 << 10
	// windowOverhead is the memory of a window's own fields and its place in the cache.
	windowOverhead = 512
)

// newSplitCache returns a cache; without a budget it gets one of its own.
func newSplitCache(budget *unpacking.Budget) *splitCache {
	if budget == nil {
		budget = unpacking.New(unpacking.DefaultBytes)
	}
	limit := budget.CacheBytes()
	return &splitCache{
		budget: budget, limit: limit, windowBytes: max(min(maxWindowBytes, limit/8), 1),
		windows: map[splitKey][]*splitWindow{}, owners: map[fairshare.Caller]*splitOwner{},
		organizations: map[string]int64{},
	}
}

// mayKeep reports whether a reader is small enough to stay in the cache.
func (c *splitCache) mayKeep(r *batchReader) bool { return r.memory() <= c.limit/2 }

// windowFor returns the size of a window that a reader fills. If the reader cannot be kept, the next
// window has to decompress the batch from its beginning again, so the window is larger.
func (c *splitCache) windowFor(r *batchReader) int64 {
	if c.mayKeep(r) {
		return c.windowBytes
	}
	return max(c.limit/4, c.windowBytes)
}

// find returns the window with an entry of a batch, or nil.
func (c *splitCache) find(key splitKey, entry uint64) *splitWindow {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.windows[key] {
		if w.contains(entry) {
			w.cached.owner.windows.MoveToFront(w.cached.element)
			return w
		}
	}
	return nil
}

// takeReader removes from the cache the reader of a batch that is nearest before an entry. It
// returns nil if there is none.
func (c *splitCache) takeReader(key splitKey, entry uint64) *batchReader {
	c.mu.Lock()
	defer c.mu.Unlock()
	var best *splitWindow
	for _, w := range c.windows[key] {
		if w.reader != nil && w.to <= entry && (best == nil || w.to > best.to) {
			best = w
		}
	}
	if best == nil {
		return nil
	}
	reader := best.reader
	best.reader = nil
	if len(best.records) == 0 {
		c.removeLocked(best)
	} else {
		c.chargeLocked(best, best.cached.bytes-reader.memory())
	}
	return reader
}

// add puts a window into the cache and evicts others as necessary. The new window stays, so that its
// reader can continue.
func (c *splitCache) add(caller fairshare.Caller, w *splitWindow) {
	c.mu.Lock()
	owner := c.owners[caller]
	if owner == nil {
		owner = &splitOwner{Caller: caller}
		c.owners[caller] = owner
	}
	w.cached = cacheEntry{owner: owner, element: owner.windows.PushFront(w)}
	c.windows[w.key] = append(c.windows[w.key], w)
	c.chargeLocked(w, windowOverhead+w.bytes+w.reader.memory())
	var evicted []*batchReader
	for c.bytes > c.limit {
		old := c.victimLocked(w)
		if old == nil {
			break
		}
		if old.reader != nil {
			evicted = append(evicted, old.reader)
			old.reader = nil
		}
		c.removeLocked(old)
	}
	c.mu.Unlock()
	for _, r := range evicted {
		r.Close()
	}
}

// victimLocked returns the window to evict for a new one, or nil if there is no other.
func (c *splitCache) victimLocked(added *splitWindow) *splitWindow {
	var most *splitOwner
	for _, o := range c.owners {
		if o.windows.Len() == 1 && o == added.cached.owner {
			continue
		}
		if most == nil || c.usesMoreLocked(o, most) {
			most = o
		}
	}
	if most == nil {
		return nil
	}
	last, _ := most.windows.Back().Value.(*splitWindow)
	return last
}

// usesMoreLocked reports whether windows of a are evicted before those of b.
func (c *splitCache) usesMoreLocked(a, b *splitOwner) bool {
	if a.Organization != b.Organization {
		return c.organizations[a.Organization] > c.organizations[b.Organization]
	}
	return a.bytes > b.bytes
}

// removeLocked removes a window without a reader.
func (c *splitCache) removeLocked(w *splitWindow) {
	c.chargeLocked(w, 0)
	owner := w.cached.owner
	owner.windows.Remove(w.cached.element)
	if owner.windows.Len() == 0 {
		delete(c.owners, owner.Caller)
	}
	list := c.windows[w.key]
	for i := range list {
		if list[i] == w {
			list[i] = list[len(list)-1]
			list[len(list)-1] = nil
			list = list[:len(list)-1]
			break
		}
	}
	if c.windows[w.key] = list; len(list) == 0 {
		delete(c.windows, w.key)
	}
}

// chargeLocked sets the bytes of a window.
func (c *splitCache) chargeLocked(w *splitWindow, bytes int64) {
	by := bytes - w.cached.bytes
	w.cached.bytes = bytes
	c.bytes += by
	c.budget.AddCached(by)
	owner := w.cached.owner
	owner.bytes += by
	if c.organizations[owner.Organization] += by; c.organizations[owner.Organization] == 0 {
		delete(c.organizations, owner.Organization)
	}
}

// drop removes the windows of an engine that was closed.
func (c *splitCache) drop(e *Engine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, list := range c.windows {
		if key.e != e {
			continue
		}
		for len(list) > 0 {
			w := list[0]
			w.reader = nil // a closed engine has no reads that could use it; the garbage collector frees it
			c.removeLocked(w)
			list = c.windows[key]
		}
	}
}
