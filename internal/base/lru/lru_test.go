package lru

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// keys returns the keys, the most recently used first.
func keys[K comparable, V any](c *Cache[K, V]) []K {
	var list []K
	for e := c.ring.next; e != &c.ring; e = e.next {
		list = append(list, e.key)
	}
	return list
}

func wantKeys(t *testing.T, c *Cache[string, int], want ...string) {
	t.Helper()
	if got := keys(c); !slices.Equal(got, want) {
		t.Errorf("keys: got %v, want %v", got, want)
	}
	if got := len(c.entries); got != len(want) {
		t.Errorf("entries: got %d, want %d", got, len(want))
	}
}

func TestCountLimit(t *testing.T) {
	t.Parallel()
	c := New[string, int](3)
	for i, key := range []string{"a", "b", "c"} {
		c.Add(key, i, 1)
	}
	wantKeys(t, c, "c", "b", "a")
	if got, ok := c.Get("a"); got != 0 || !ok {
		t.Errorf("Get(a): got %d, %v, want 0, true", got, ok)
	}
	c.Add("d", 3, 1)
	wantKeys(t, c, "d", "a", "c")
	if got, ok := c.Get("b"); got != 0 || ok {
		t.Errorf("Get(b), which was evicted: got %d, %v, want 0, false", got, ok)
	}
}

func TestCostLimit(t *testing.T) {
	t.Parallel()
	c := New[string, int](10)
	c.Add("a", 1, 4)
	c.Add("b", 2, 4)
	c.Add("c", 3, 2)
	wantKeys(t, c, "c", "b", "a")
	c.Add("d", 4, 5) // evicts both a and b, which cost 4 each
	wantKeys(t, c, "d", "c")
	if c.cost != 7 {
		t.Errorf("cost: got %d, want 7", c.cost)
	}
	if got := c.Add("huge", 5, 11); got != 5 {
		t.Errorf("Add with a cost over the limit: got %d, want 5", got)
	}
	wantKeys(t, c, "d", "c")
	c.Add("free", 6, -3)
	if c.cost != 8 {
		t.Errorf("cost after an entry with a cost below 1: got %d, want 8", c.cost)
	}
}

func TestFirstAddStays(t *testing.T) {
	t.Parallel()
	c := New[string, int](2)
	c.Add("a", 1, 1)
	c.Add("b", 2, 1)
	if got := c.Add("a", 3, 1); got != 1 {
		t.Errorf("second Add(a): got %d, want 1", got)
	}
	wantKeys(t, c, "a", "b")
}

func TestZeroLimit(t *testing.T) {
	t.Parallel()
	c := New[string, int](0)
	if got := c.Add("a", 1, 1); got != 1 {
		t.Errorf("Add: got %d, want 1", got)
	}
	wantKeys(t, c)
}

// TestAgainstModel compares the cache with a simple model based on a slice.
func TestAgainstModel(t *testing.T) {
	t.Parallel()
	const limit = 40
	type kept struct{ key, value, cost int }
	c, model := New[int, int](limit), []kept{} // the most recently used first
	random := rand.New(rand.NewPCG(1, 2))
	for step := range 20_000 {
		key := random.IntN(30)
		at := slices.IndexFunc(model, func(k kept) bool { return k.key == key })
		var found kept
		if at >= 0 {
			found = model[at]
			model = slices.Insert(slices.Delete(model, at, at+1), 0, found)
		}
		if random.IntN(2) == 0 {
			if got, ok := c.Get(key); got != found.value || ok != (at >= 0) {
				t.Fatalf("step %d, Get(%d): got %d, %v, want %d, %v", step, key, got, ok, found.value, at >= 0)
			}
			continue
		}
		cost := 1 + random.IntN(limit+2)
		if random.IntN(4) > 0 {
			cost = 1 + cost%5
		}
		want := step
		switch {
		case at >= 0:
			want = found.value
		case cost <= limit:
			model = slices.Insert(model, 0, kept{key, step, cost})
			for sum := limit + 1; sum > limit; {
				sum = 0
				for _, k := range model {
					sum += k.cost
				}
				if sum > limit {
					model = model[:len(model)-1]
				}
			}
		}
		if got := c.Add(key, step, int64(cost)); got != want {
			t.Fatalf("step %d, Add(%d): got %d, want %d", step, key, got, want)
		}
		wantOrder := make([]int, len(model))
		for i, k := range model {
			wantOrder[i] = k.key
		}
		if got := keys(c); !slices.Equal(got, wantOrder) {
			t.Fatalf("step %d: got keys %v, want %v", step, got, wantOrder)
		}
	}
}

// TestConcurrentUse checks that concurrent calls of Add for one key return the same value.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	c := New[string, int](100)
	var wg sync.WaitGroup
	got := make([]int, 8)
	for i := range got {
		wg.Go(func() {
			got[i] = c.Add("shared", i+1, 1)
			for n := range 1000 {
				key := strconv.Itoa(n % 50)
				if _, ok := c.Get(key); !ok {
					c.Add(key, n, 1)
				}
			}
		})
	}
	wg.Wait()
	for i, value := range got {
		if value != got[0] {
			t.Errorf("goroutine %d: got %d, want %d", i, value, got[0])
		}
	}
}

// BenchmarkGet measures a hit.
func BenchmarkGet(b *testing.B) {
	c := New[int, int](1000)
	for i := range 1000 {
		c.Add(i, i, 1)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c.Get(i % 1000)
	}
}
