package protobuf

import (
	"cmp"
	"slices"
)

// hashOrder returns the names of old and new, each once.
//
// Quirk: clients see the order of differences, and Confluent Schema Registry iterates over
// the names of types in the order of Java's hash tables: those of a HashMap of old, then of
// a HashMap of new, in one HashSet. The same order is used here. It is deterministic.
func hashOrder(old, new []string) []string {
	inserted := union(bucketOrder(slices.Clone(old), 16), bucketOrder(slices.Clone(new), 16))
	capacity := 16 // a HashSet of a collection starts with the capacity for it
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

// bucketOrder sorts names by their bucket in a hash table with a load factor of 3/4. Within
// a bucket they keep their order.
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
