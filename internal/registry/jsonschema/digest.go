package jsonschema

import (
	"hash/maphash"
	"math/bits"

	"freshet/internal/registry/jsontree"
)

// digest is the hash of a value. Two values in one process are considered equal if their
// 64-bit hashes are. The seed is random and never leaves the process, so an attacker cannot
// construct a collision; the probability of a random collision in a union of a thousand
// branches is 10^-13. The order of members does not matter, and numbers are compared by
// value. Equal parts of two schemas need no comparison; see BenchmarkCompare.
type digest struct {
	hash uint64
	refs bool // a reference keyword occurs in the value or below
}

// digests has the digests of the arrays and objects of a document.
type digests map[*jsontree.List]digest

// newDigests computes the digests of all parts of a value. Its depth is bounded.
func newDigests(root *jsontree.Value) digests {
	d := digests{}
	d.add(root)
	return d
}

// add computes the digests of a value and of its parts.
func (sums digests) add(v *jsontree.Value) digest {
	if v.List == nil {
		return sums.of(v)
	}
	sum := digest{hash: mix(uint64(v.Kind)+seedA, uint64(v.Len()))}
	for _, item := range v.Elements() {
		inner := sums.add(item)
		sum.hash = mix(sum.hash, inner.hash)
		sum.refs = sum.refs || inner.refs
	}
	for name, member := range v.Members() {
		inner := sums.add(member)
		// Addition makes the hash independent of the order of members.
		sum.hash += mix(hashText('k', name), inner.hash)
		sum.refs = sum.refs || inner.refs || isReferenceKeyword(name)
	}
	sums[v.List] = sum
	return sum
}

// of returns the digest of a value that was added.
func (sums digests) of(v *jsontree.Value) digest {
	switch v.Kind {
	case jsontree.Array, jsontree.Object:
		return sums[v.List]
	case jsontree.String:
		return digest{hash: hashText('s', v.Text)}
	case jsontree.Number:
		return digest{hash: hashText('n', parseDecimal(v.Text).key())}
	}
	return digest{hash: hashText('l', emit(v))} // null, true or false
}

// repeats reports whether two elements of an array are equal.
func (sums digests) repeats(list *jsontree.Value) bool {
	seen := make(map[uint64]bool, list.Len())
	for _, item := range list.Elements() {
		hash := sums.of(item).hash
		if seen[hash] {
			return true
		}
		seen[hash] = true
	}
	return false
}

func isReferenceKeyword(key string) bool {
	return key == "$ref" || key == "$dynamicRef" || key == "$recursiveRef"
}

var (
	hashSeed = maphash.MakeSeed()
	seedA    = maphash.String(hashSeed, "a") | 1
	seedB    = maphash.String(hashSeed, "b") | 1
)

func hashText(kind byte, s string) uint64 { return mix(maphash.String(hashSeed, s), uint64(kind)) }

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^seedA, b^seedB)
	hi, lo = bits.Mul64(hi^lo^seedB, (a+b)|1)
	return hi ^ lo
}
