package simulation

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// settled is how long after damage of a copy its status in etcd is that of the copy as it is now.
const settled = 10 * time.Second

// spoiled is a damaged file of a copy.
type spoiled struct {
	member, path string
	content      []byte // after the damage; nil for a file that was deleted
	at           time.Time
}

// spoil damages a file of a member's copy of a shard, on a disk that the member uses or after a crash. It does
// so only when all copies are intact, because damage of one member must be nobody's loss.
func (w *world) spoil(ctx context.Context, name string, shard int) {
	m := w.get(name)
	if m == nil || !w.intact(shard) {
		return
	}
	crash := w.random.IntN(2) == 0
	if crash {
		w.crash(name)
		m.fs = w.disks[name]
	}
	if damaged := w.spoilFile(m, shard); damaged != nil {
		w.spoiled[shard] = damaged
		w.spoils++
	}
	if crash {
		w.again(ctx, name)
	}
}

// intact reports whether all copies of a shard are intact and known to be, so that one may be damaged.
func (w *world) intact(shard int) bool {
	damaged := w.spoiled[shard]
	if damaged != nil && time.Since(damaged.at) < settled {
		return false
	}
	var any *member
	for _, name := range names {
		m := w.get(name)
		if m == nil || !m.nats.Reachable() {
			return false
		}
		if damaged != nil && name == damaged.member && damaged.content != nil {
			if content, err := readFile(m.fs, damaged.path); err == nil && string(content) == string(damaged.content) {
				return false // not found yet
			}
		}
		any = m
	}
	good := 0
	for _, c := range any.shards[shard].Status().Copies {
		if c.Live && c.Flushed > 0 && !c.Lost && c.Problem == "" {
			good++
		}
	}
	return good == len(names)
}

// spoilFile damages a random file of a copy. It returns nil if there is none.
func (w *world) spoilFile(m *member, shard int) *spoiled {
	dir := w.shardDir(m.name, shard)
	all, err := m.fs.List(dir)
	var files []string
	for _, file := range all {
		if file != "LOCK" && (strings.HasSuffix(file, ".sst") || w.random.IntN(4) == 0) { // tables most often
			files = append(files, file)
		}
	}
	if err != nil || len(files) == 0 {
		return nil
	}
	file := files[w.random.IntN(len(files))]
	out := &spoiled{member: m.name, path: dir + "/" + file, at: time.Now()}
	content, err := readFile(m.fs, out.path)
	if err != nil {
		return nil
	}
	kind := "deleted"
	if kinds := 4; len(content) > 0 && w.random.IntN(kinds) > 0 {
		kind, out.content = spoilContent(content, w.random)
	}
	if out.content == nil {
		err = m.fs.Remove(out.path)
	} else {
		err = writeFile(m.fs, out.path, out.content)
	}
	if err != nil {
		return nil
	}
	w.fault("%s of shard %d at %s is damaged: %s", file, shard, m.name, kind)
	return out
}

// spoilContent changes the content of a file.
func spoilContent(content []byte, random *rand.Rand) (kind string, changed []byte) {
	at := random.IntN(len(content))
	switch random.IntN(3) {
	case 0:
		return "cut", content[:at]
	case 1:
		clear(content[at:min(len(content), at+4096)])
		return "zeroed", content
	default:
		content[at] ^= 1 << random.IntN(8)
		return "flipped", content
	}
}

func readFile(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(f)
	return content, errors.Join(err, f.Close())
}

// writeFile replaces the content of a file. A process that has the file open sees the change, unless the file
// becomes shorter.
func writeFile(fs vfs.FS, path string, content []byte) error {
	info, err := fs.Stat(path)
	if err != nil {
		return err
	}
	var f vfs.File
	if int64(len(content)) < info.Size() {
		f, err = fs.Create(path, vfs.WriteCategoryUnspecified)
	} else {
		f, err = fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	err = errors.Join(err, f.Sync(), f.Close())
	dir, dirErr := fs.OpenDir(fs.PathDir(path))
	if dirErr == nil {
		dirErr = errors.Join(dir.Sync(), dir.Close())
	}
	return errors.Join(err, dirErr)
}
