package telemetry

import (
	"context"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"
)

// memoryShare of the container's limit is left to the Go heap; the rest is for
// stacks, the page cache of mapped files, and what the collector overshoots.
const memoryShare = 0.8

// LimitMemory sets the runtime's soft memory limit from the cgroup the process
// lives in, unless GOMEMLIMIT already did. It returns the limit in force, or 0
// when there is none.
func LimitMemory() int64 {
	if os.Getenv("GOMEMLIMIT") == "" {
		if limit, ok := cgroupLimit(os.DirFS("/")); ok {
			debug.SetMemoryLimit(int64(float64(limit) * memoryShare))
		}
	}
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return limit
	}
	return 0
}

// unlimited is what cgroup v1 shows for no limit: the largest multiple of the
// page size, which no machine has.
const unlimited = 1 << 60

// cgroupLimit returns the tightest memory limit on the way from the process's
// cgroup to the root, of version 2 or 1.
func cgroupLimit(root fs.FS) (int64, bool) {
	self, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	tightest := int64(unlimited)
	for line := range strings.Lines(string(self)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[0] == "0" && parts[1] == "":
			tightest = min(tightest, limitAlong(root, "sys/fs/cgroup", parts[2], "memory.max"))
		case strings.Contains(","+parts[1]+",", ",memory,"):
			tightest = min(tightest, limitAlong(root, "sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes"))
		}
	}
	return tightest, tightest < unlimited
}

// limitAlong reads file in dir and in every parent up to mount. Inside a
// container the path is the host's while the mount shows the container's own
// part, so folders that do not exist are passed over.
func limitAlong(root fs.FS, mount, dir, file string) int64 {
	tightest := int64(unlimited)
	for dir = path.Clean("/" + dir); ; dir = path.Dir(dir) {
		if text, err := fs.ReadFile(root, path.Join(mount, dir, file)); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
				tightest = min(tightest, n)
			}
		}
		if dir == "/" {
			return tightest
		}
	}
}

const (
	tidyEvery = 5 * time.Second
	// quietBytes are allocated between two looks at most when nothing much is
	// going on.
	quietBytes = 32 << 20
	// spareBytes is how much memory has to come back to be worth a collection.
	spareBytes = 64 << 20
)

// ReturnMemory gives back to the system what a burst of work left behind, once
// things are quiet. The collector by itself keeps it for the next burst, and
// looks every two minutes only. It ends with the context.
func ReturnMemory(ctx context.Context) {
	look := time.NewTicker(tidyEvery)
	defer look.Stop()
	var k memoryReturner
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if k.due(memoryHeld()) {
			debug.FreeOSMemory()
			k.least, _ = memoryHeld()
		}
	}
}

// memoryReturner decides when to tidy up.
type memoryReturner struct {
	least     uint64 // held after the last time, or less since
	allocated uint64 // ever, at the last look
}

// due reports whether memory should go back, from what the process holds of it
// and has ever allocated.
func (k *memoryReturner) due(held, allocated uint64) bool {
	quiet := allocated-k.allocated <= quietBytes
	k.allocated, k.least = allocated, min(k.least, held)
	return quiet && held > k.least+spareBytes
}

// memoryHeld returns the memory that the runtime has of the system, and the
// bytes that it ever allocated.
func memoryHeld() (held, allocated uint64) {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/gc/heap/allocs:bytes"},
	}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64(), samples[2].Value.Uint64()
}
