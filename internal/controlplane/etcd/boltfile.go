package etcd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// The member stores everything in one B+ tree in one file of pages (numbers are sizes in bytes):
//
//	page:    id (8) | kind (2) | elements (2) | further pages (4) | ...
//	meta:    magic, version, page size, flags (4 each) |
//	         root, sequence, free list, pages, transaction, checksum (8 each)
//	branch:  elements of key position, key size (4 each) | page (8)
//	leaf:    elements of flags, key position, key size, value size (4 each)
//
// bbolt maps the file into memory and follows its pointers without checking them; damage crashes
// the process. checkTree reads the file with ordinary reads and checks every value, so that damage
// is reported before the member starts.
const (
	pageHeader  = 16
	element     = 16
	metaSize    = 64
	metaMagic   = 0xED0CDAED
	metaVersion = 2
	noFreeList  = ^uint64(0)

	kindBranch   = 0x01
	kindLeaf     = 0x02
	kindFreeList = 0x10
	leafIsBucket = 0x01

	keyBucket = "key" // etcd's bucket that contains all keys

	maxDepth    = 64
	maxProblems = 20
)

// tree is the state of checking one file.
type tree struct {
	file     io.ReaderAt
	size     int64
	pageSize int64
	pages    uint64 // used and free pages together
	visited  map[uint64]bool
	hasKeys  bool // at least one key is stored
	inKeys   bool // the walk is in the bucket of keys
	problems []error
}

// checkTree returns the damage in a bbolt file, nil if there is none, and whether anything is
// stored in the file.
func checkTree(path string) (used bool, err error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }() // opened for reading only
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return false, err
	}
	t := &tree{file: file, size: info.Size(), visited: map[uint64]bool{}}
	root, free, err := t.readMeta()
	if err != nil {
		return false, err
	}
	if int64(t.pages) > t.size/t.pageSize {
		return false, fmt.Errorf("file has %d bytes, but its %d pages need %d: it is truncated", t.size, t.pages,
			int64(t.pages)*t.pageSize)
	}
	t.walk(root, 0, keyRange{})
	t.checkFree(free)
	return t.hasKeys, errors.Join(t.problems...)
}

func (t *tree) problem(format string, args ...any) {
	if len(t.problems) < maxProblems {
		t.problems = append(t.problems, fmt.Errorf(format, args...))
	}
}

// readMeta reads the newer of the two meta pages, or the one that is intact.
func (t *tree) readMeta() (root, free uint64, err error) {
	var newest uint64
	found := false
	try := func(at int64) {
		b := make([]byte, metaSize)
		if _, err := t.file.ReadAt(b, at+pageHeader); err != nil {
			return
		}
		sum := fnv.New64a()
		_, _ = sum.Write(b[:56]) // never fails
		size := int64(binary.LittleEndian.Uint32(b[8:]))
		transaction := binary.LittleEndian.Uint64(b[48:])
		if binary.LittleEndian.Uint32(b) != metaMagic || binary.LittleEndian.Uint32(b[4:]) != metaVersion ||
			binary.LittleEndian.Uint64(b[56:]) != sum.Sum64() || size < 512 || found && transaction < newest {
			return
		}
		found, newest, t.pageSize = true, transaction, size
		root, free, t.pages = binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[32:]),
			binary.LittleEndian.Uint64(b[40:])
	}
	try(0)
	if found {
		try(t.pageSize)
	} else {
		for size := int64(1 << 10); size <= 64<<10 && !found; size *= 2 {
			try(size)
		}
	}
	if !found {
		return 0, 0, errors.New("both meta pages are damaged")
	}
	return root, free, nil
}

// page reads a page with its continuation pages, and records them as seen.
func (t *tree) page(id uint64) (kind uint16, count int, data []byte, ok bool) {
	if id >= t.pages {
		t.problem("page %d is referenced but does not exist", id)
		return 0, 0, nil, false
	}
	head := make([]byte, pageHeader)
	if _, err := t.file.ReadAt(head, int64(id)*t.pageSize); err != nil {
		t.problem("page %d cannot be read: %w", id, err)
		return 0, 0, nil, false
	}
	more := uint64(binary.LittleEndian.Uint32(head[12:]))
	if binary.LittleEndian.Uint64(head) != id || id+more >= t.pages {
		t.problem("page %d has an invalid header", id)
		return 0, 0, nil, false
	}
	for i := id; i <= id+more; i++ {
		if t.visited[i] {
			t.problem("page %d is used twice", i)
			return 0, 0, nil, false
		}
		t.visited[i] = true
	}
	data = make([]byte, int64(more+1)*t.pageSize)
	if _, err := t.file.ReadAt(data, int64(id)*t.pageSize); err != nil {
		t.problem("page %d cannot be read: %w", id, err)
		return 0, 0, nil, false
	}
	return binary.LittleEndian.Uint16(head[8:]), int(binary.LittleEndian.Uint16(head[10:])), data, true
}

// keyRange is the range in which the keys of a page must lie: from low on, and before high unless
// that is nil.
type keyRange struct{ low, high []byte }

func (r keyRange) has(key []byte) bool {
	return bytes.Compare(key, r.low) >= 0 && (r.high == nil || bytes.Compare(key, r.high) < 0)
}

// walk checks a page and the pages below it.
func (t *tree) walk(id uint64, depth int, within keyRange) {
	if depth > maxDepth || len(t.problems) >= maxProblems {
		t.problem("page %d is too deep in the tree", id)
		return
	}
	kind, count, data, ok := t.page(id)
	if !ok {
		return
	}
	if kind != kindBranch && kind != kindLeaf || pageHeader+count*element > len(data) {
		t.problem("page %d is neither a branch nor a leaf", id)
		return
	}
	if kind == kindBranch && count == 0 {
		t.problem("page %d is a branch without elements", id)
	}
	keys, ok := t.keysOf(id, kind, count, data, within)
	if !ok {
		return
	}
	for i, key := range keys {
		at := pageHeader + i*element
		if kind == kindLeaf {
			t.leaf(id, i, data[at:], key, depth)
			continue
		}
		below := keyRange{key, within.high}
		if i+1 < count {
			below.high = keys[i+1]
		}
		t.walk(binary.LittleEndian.Uint64(data[at+8:]), depth+1, below)
	}
}

// keysOf returns the keys of a page after checking their positions and their order.
func (t *tree) keysOf(id uint64, kind uint16, count int, data []byte, within keyRange) (keys [][]byte, ok bool) {
	for i := range count {
		at := pageHeader + i*element
		field := func(n int) int { return int(binary.LittleEndian.Uint32(data[at+4*n:])) }
		pos, size, value := field(0), field(1), 0
		if kind == kindLeaf {
			pos, size, value = field(1), field(2), field(3)
		}
		start := at + pos
		if start < pageHeader+count*element || start+size+value > len(data) {
			t.problem("page %d: element %d points outside the page", id, i)
			return nil, false
		}
		key := data[start : start+size]
		if !within.has(key) || i > 0 && bytes.Compare(keys[i-1], key) >= 0 {
			t.problem("page %d: keys are out of order", id)
			return nil, false
		}
		keys = append(keys, key)
	}
	return keys, true
}

// leaf checks an element of a leaf; data begins at the element.
func (t *tree) leaf(id uint64, i int, data, key []byte, depth int) {
	start := int(binary.LittleEndian.Uint32(data[4:])) + len(key)
	value := data[start : start+int(binary.LittleEndian.Uint32(data[12:]))]
	flags := binary.LittleEndian.Uint32(data)
	if t.inKeys {
		if flags != 0 {
			t.problem("page %d: element %d is no key", id, i)
		} else if wrong := checkChange(key, value); wrong != "" {
			t.problem("page %d: element %d %s", id, i, wrong)
		}
		return
	}
	if flags&leafIsBucket == 0 {
		return
	}
	if len(value) < element {
		t.problem("page %d: bucket %q is too short", id, key)
		return
	}
	isKeys := string(key) == keyBucket
	if root := binary.LittleEndian.Uint64(value); root != 0 {
		t.hasKeys, t.inKeys = t.hasKeys || isKeys, isKeys
		t.walk(root, depth+1, keyRange{})
		t.inKeys = false
	} else if isKeys && len(value) >= 2*element { // an inline bucket, stored in the leaf itself
		t.inlineKeys(id, value[element:])
	}
}

// inlineKeys checks the bucket of keys when it is stored in a leaf of another bucket, whose page is id.
func (t *tree) inlineKeys(id uint64, data []byte) {
	count := int(binary.LittleEndian.Uint16(data[10:]))
	t.hasKeys = count > 0
	if pageHeader+count*element > len(data) {
		t.problem("page %d: bucket %q is too short", id, keyBucket)
		return
	}
	keys, ok := t.keysOf(id, kindLeaf, count, data, keyRange{})
	if !ok {
		return
	}
	t.inKeys = true
	for i, key := range keys {
		t.leaf(id, i, data[pageHeader+i*element:], key, 0)
	}
	t.inKeys = false
}

// checkFree checks that no free page is in use.
func (t *tree) checkFree(id uint64) {
	if id == noFreeList {
		return
	}
	kind, count, data, ok := t.page(id)
	if !ok {
		return
	}
	ids := data[pageHeader:]
	if count == 0xFFFF { // the first number is the count
		if n := binary.LittleEndian.Uint64(ids); n < uint64(len(ids)/8) {
			count, ids = int(n), ids[8:]
		}
	}
	if kind != kindFreeList || count*8 > len(ids) {
		t.problem("page %d is not the list of free pages", id)
		return
	}
	for i := range count {
		if free := binary.LittleEndian.Uint64(ids[8*i:]); free < 2 || free >= t.pages || t.visited[free] {
			t.problem("page %d is listed as free, but is in use or does not exist", free)
		}
	}
}
