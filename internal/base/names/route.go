package names

import "math/bits"

// Route returns the partition of a key in a topic with n partitions: murmur3_32 with seed 0 over
// the key's UTF-8 bytes, masked to a positive number, modulo n. It is the only hash that the
// Pulsar clients of all languages support.
func Route(key string, n int32) int32 {
	if n <= 1 {
		return 0
	}
	return int32(murmur3(key)&0x7fffffff) % n
}

// RouteMurmur2 is Route with the hash of Kafka clients: murmur2 with their common seed.
func RouteMurmur2(key string, n int32) int32 {
	if n <= 1 {
		return 0
	}
	return int32(murmur2(key)&0x7fffffff) % n
}

func murmur2(s string) uint32 {
	const (
		m    = 0x5bd1e995
		seed = 0x9747b28c
	)
	h := uint32(seed) ^ uint32(len(s))
	i := 0
	for ; i+4 <= len(s); i += 4 {
		k := uint32(s[i]) | uint32(s[i+1])<<8 | uint32(s[i+2])<<16 | uint32(s[i+3])<<24
		k *= m
		k ^= k >> 24
		k *= m
		h = h*m ^ k
	}
	switch len(s) - i {
	case 3:
		h ^= uint32(s[i+2]) << 16
		fallthrough
	case 2:
		h ^= uint32(s[i+1]) << 8
		fallthrough
	case 1:
		h ^= uint32(s[i])
		h *= m
	}
	h ^= h >> 13
	h *= m
	h ^= h >> 15
	return h
}

const (
	murmurC1 = 0xcc9e2d51
	murmurC2 = 0x1b873593
)

// murmur3 is the 32-bit x86 variant with seed 0.
func murmur3(s string) uint32 {
	var h uint32
	i := 0
	for ; i+4 <= len(s); i += 4 {
		k := uint32(s[i]) | uint32(s[i+1])<<8 | uint32(s[i+2])<<16 | uint32(s[i+3])<<24
		h ^= murmurMix(k)
		h = bits.RotateLeft32(h, 13)*5 + 0xe6546b64
	}
	if i < len(s) {
		var k uint32
		for j := len(s) - 1; j >= i; j-- {
			k = k<<8 | uint32(s[j])
		}
		h ^= murmurMix(k)
	}
	h ^= uint32(len(s))
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	h ^= h >> 16
	return h
}

func murmurMix(k uint32) uint32 {
	return bits.RotateLeft32(k*murmurC1, 15) * murmurC2
}
