package jsonschema

import (
	"hash/maphash"
	"math/bits"

	"freshet/internal/registry/jsontree"
)

// digest is what is known of a value without looking inside it again. Two
// values of one process are taken as equal when their 64-bit hashes are. The
// seed is random and never leaves the process, so nobody can aim at a
// collision, and by chance a union of a thousand branches meets one once in
// 10^13 tries. Members count without their order, numbers by value. Equal parts
// of two schemas need no comparison then; see BenchmarkCompare.
type digest struct {
	hash uint64
	refs bool // a reference keyword occurs in the value or below
}

// digests holds the digests of the arrays and objects of a document.
type digests map[*jsontree.List]digest

// newDigests looks at every part of a value, whose depth is bounded.
func newDigests(root *jsontree.Value) digests {
	d := digests{}
	d.add(root)
	return d
}

// add digests a value and all that is inside it.
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
		// A sum, so that the order of members does not matter.
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

// repeats says whether two elements of an array are equal.
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

func hashText(kind byte, s string) uint64 {
	return mix(maphash.String(hashSeed, s), uint64(kind))
}

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^seedA, b^seedB)
	hi, lo = bits.Mul64(hi^lo^seedB, (a+b)|1)
	return hi ^ lo
}
