package protobuf

import (
	"cmp"
	"slices"
)

// hashOrder returns the names of old and new, each once.
//
// Quirk: the order of differences is part of what clients see, and the registry
// that set the custom walks the names of types as Java's hash sets hold them:
// those of a HashMap of old, then of one of new, put into one HashSet. Walking
// them the same way also makes our order deterministic.
func hashOrder(old, new []string) []string {
	inserted := union(bucketOrder(slices.Clone(old), 16), bucketOrder(slices.Clone(new), 16))
	capacity := 16 // a set made from a collection starts with room for it
	for capacity < len(old)*4/3+1 {
		capacity *= 2
	}
	return bucketOrder(inserted, capacity)
}

func union[K comparable](a, b []K) []K {
	out, seen := make([]K, 0, len(a)+len(b)), make(map[K]bool, len(a)+len(b))
	for _, k := range slices.Concat(a, b) {
		if !seen[k] {
			seen[k] = true
			out = append(out, k)
		}
	}
	return out
}

// sortedUnion is union in ascending order.
func sortedUnion[K cmp.Ordered](a, b []K) []K {
	out := union(a, b)
	slices.Sort(out)
	return out
}

// bucketOrder sorts names by the bucket they fall into in a table that has
// grown to hold them at three quarters full; within a bucket they keep their
// order.
func bucketOrder(names []string, capacity int) []string {
	for len(names) > capacity/4*3 {
		capacity *= 2
	}
	bucket := func(name string) uint32 {
		var h uint32 // String.hashCode
		for i := range len(name) {
			h = h*31 + uint32(name[i])
		}
		return (h ^ h>>16) & uint32(capacity-1)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(bucket(a), bucket(b)) })
	return names
}
