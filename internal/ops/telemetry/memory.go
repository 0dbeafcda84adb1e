package telemetry

import (
	"context"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"freshet/internal/base/retry"
)

// memoryShare is the share of the container's limit that the Go runtime may use. The
// rest is for the page cache of mapped files and for overshooting the soft limit.
const memoryShare = 0.8

// LimitMemory sets the runtime's soft memory limit from the cgroup of the process,
// unless GOMEMLIMIT is set. Without either, the limit is defaultLimit while the live heap is
// small. It returns the limit in force, or 0 if there is none.
func LimitMemory() int64 {
	if os.Getenv("GOMEMLIMIT") == "" {
		if limit, ok := cgroupLimit(os.DirFS("/")); ok {
			debug.SetMemoryLimit(int64(float64(limit) * memoryShare))
		} else {
			debug.SetMemoryLimit(limitFor(0))
			afterCollections(func() {
				if limit := limitFor(liveHeap()); limit != debug.SetMemoryLimit(-1) {
					debug.SetMemoryLimit(limit)
				}
			})
		}
	}
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return limit
	}
	return 0
}

const (
	// defaultLimit is the soft memory limit of a server without any other limit. The runtime otherwise
	// lets the heap grow to twice what is live, so that a burst of 500 MB takes more than 1 GB.
	defaultLimit = 768 << 20
	// maxLimitedHeap is the live heap up to which there is a limit. A larger one may double as without
	// a limit: collecting it often costs too much.
	maxLimitedHeap = 1 << 30
	// limitStep is the granularity of the limit. The runtime pauses the process for a moment to change it.
	limitStep = 64 << 20
)

// limitFor returns the soft memory limit for a live heap: a third more than what is live. Most of a large heap is
// buffers without pointers, which a collection does not read, so collecting often costs little.
func limitFor(live uint64) int64 {
	if live > maxLimitedHeap {
		return math.MaxInt64
	}
	needed := int64(live + live/3)
	return max(defaultLimit, (needed+limitStep-1)/limitStep*limitStep)
}

// liveHeap returns the bytes that the last collection found in use.
func liveHeap() uint64 {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64()
}

// collected is an object that nothing refers to, so the next collection frees it. It has a pointer,
// because the runtime frees small objects without pointers late.
type collected struct{ _ *collected }

// afterCollections calls do after every garbage collection.
func afterCollections(do func()) {
	runtime.AddCleanup(new(collected), func(do func()) {
		do()
		afterCollections(do)
	}, do)
}

// unlimited is less than the value that cgroup v1 shows for no limit, and more than any
// machine has.
const unlimited = 1 << 60

// cgroupLimit returns the lowest memory limit of the process's cgroup and its parents,
// for cgroup v2 and v1.
func cgroupLimit(root fs.FS) (int64, bool) {
	self, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	lowest := int64(unlimited)
	for line := range strings.Lines(string(self)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[0] == "0" && parts[1] == "":
			lowest = min(lowest, limitAlong(root, "sys/fs/cgroup", parts[2], "memory.max"))
		case strings.Contains(","+parts[1]+",", ",memory,"):
			lowest = min(lowest, limitAlong(root, "sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes"))
		}
	}
	return lowest, lowest < unlimited
}

// limitAlong returns the lowest limit in file, in dir and in every parent up to mount.
// Inside a container the path is the host's, but the mount shows only the container's
// own part, so it skips directories that do not exist.
func limitAlong(root fs.FS, mount, dir, file string) int64 {
	lowest := int64(unlimited)
	for dir = path.Clean("/" + dir); ; dir = path.Dir(dir) {
		if text, err := fs.ReadFile(root, path.Join(mount, dir, file)); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
				lowest = min(lowest, n)
			}
		}
		if dir == "/" {
			return lowest
		}
	}
}

const (
	memoryCheckInterval = 5 * time.Second
	// idleBytes is the allocation between two checks up to which the process counts as
	// idle.
	idleBytes = 32 << 20
	// minReturnBytes is how much memory must be reclaimable to justify a collection.
	minReturnBytes = 64 << 20
)

// ReturnMemory returns unused memory to the operating system when the process is idle
// after a burst of work. Without it, an idle runtime collects only every two minutes and
// keeps memory for the next burst. It runs until the context ends.
func ReturnMemory(ctx context.Context) {
	var k memoryReturner
	for range retry.Every(ctx, memoryCheckInterval) {
		if k.due(memoryHeld()) {
			debug.FreeOSMemory()
			k.lowest, _ = memoryHeld()
		}
	}
}

// memoryReturner decides when to return memory.
type memoryReturner struct {
	lowest    uint64 // lowest amount of held memory since the last return
	allocated uint64 // total allocated bytes at the last check
}

// due reports whether memory should be returned. held is the memory of the process,
// allocated the total bytes that it has ever allocated.
func (k *memoryReturner) due(held, allocated uint64) bool {
	quiet := allocated-k.allocated <= idleBytes
	k.allocated, k.lowest = allocated, min(k.lowest, held)
	return quiet && held > k.lowest+minReturnBytes
}

// memoryHeld returns the memory that the runtime holds, and the total bytes that it has
// ever allocated.
func memoryHeld() (held, allocated uint64) {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/gc/heap/allocs:bytes"},
	}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64(), samples[2].Value.Uint64()
}
