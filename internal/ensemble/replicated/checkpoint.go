package replicated

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
)

const (
	// reuseTimeout is how long a checkpoint is offered to other members after its creation.
	reuseTimeout = time.Minute
	// reverifyTimeout is how long after its verification a checkpoint is offered without another one.
	reverifyTimeout = 5 * time.Second
	// unusedTimeout is how long a checkpoint is kept after it was last read.
	unusedTimeout = 2 * time.Minute
)

// listing is the list of a checkpoint's files.
type listing struct {
	ID    string     `json:"id"`
	Files []fileInfo `json:"files"`
}

// fileInfo is a file of a checkpoint.
type fileInfo struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	Sum  string `json:"sum"` // CRC-32C in hexadecimal digits
}

// checkpoints are those that other members are fetching. They are next to the store and
// consist of hard links to its tables.
type checkpoints struct {
	createMu sync.Mutex // held while a checkpoint is created

	mu  sync.Mutex // protects all, and lastUsed and readers of its elements; a leaf lock
	all map[string]*servedCheckpoint
}

type servedCheckpoint struct {
	listing
	dir        string
	createdAt  time.Time
	verifiedAt time.Time // protected by checkpoints.createMu
	lastUsed   time.Time
	readers    int // readers
}

// recent returns a checkpoint that is offered again, or nil, and counts its use.
func (c *checkpoints) recent() *servedCheckpoint {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.all {
		if time.Since(v.createdAt) < reuseTimeout {
			v.lastUsed = time.Now()
			return v
		}
	}
	return nil
}

func (s *Shard) checkpointDir() string { return s.o.Dir + "-checkpoints" }

// Path is the path on the internal listener for Handler.
const Path = "/checkpoints"

// copyPattern matches the requests about one copy.
const copyPattern = "GET " + Path + "/{cluster}/{number}"

// Handler serves checkpoints of shards to other members, under Path. It must be mounted on a
// listener that accepts members only.
func Handler(find func(cluster string, number int) *Shard) http.Handler {
	mux := http.NewServeMux()
	shard := func(w http.ResponseWriter, r *http.Request) *Shard {
		number, err := strconv.Atoi(r.PathValue("number"))
		if err == nil {
			if s := find(r.PathValue("cluster"), number); s != nil {
				return s
			}
		}
		http.Error(w, "this member has no copy of the shard", http.StatusNotFound)
		return nil
	}
	mux.HandleFunc(copyPattern+"/checkpoint", func(w http.ResponseWriter, r *http.Request) {
		s := shard(w, r)
		if s == nil {
			return
		}
		list, err := s.offer(r.Context(), r.URL.RawQuery == queryFresh)
		if errors.Is(err, errNotFollowing) {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		if err != nil {
			if ok, _ := s.healLines.Allow("offer"); ok {
				s.log.Warn("creating a checkpoint for another member failed; that member retries",
					slog.Any("error", err))
			}
			http.Error(w, "creating the checkpoint failed; see the log of this member",
				http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list) // the client retries
	})
	mux.HandleFunc(copyPattern+"/state", func(w http.ResponseWriter, r *http.Request) {
		s := shard(w, r)
		if s == nil {
			return
		}
		is, err := s.state()
		if err != nil {
			http.Error(w, "this member's copy is not open", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(is) // the client retries
	})
	mux.HandleFunc(copyPattern+"/checkpoint/{id}/{file}", func(w http.ResponseWriter, r *http.Request) {
		if s := shard(w, r); s != nil {
			s.serveFile(w, r)
		}
	})
	return mux
}

// errNotFollowing means that this member's copy cannot serve as a source for others.
var errNotFollowing = errors.New("copy of this member does not follow the log")

// queryFresh requests a checkpoint with everything that was in the log before the request.
const queryFresh = "fresh"

// offer returns a recent checkpoint, or creates one. A fresh checkpoint has everything that
// was in the log before the call.
func (s *Shard) offer(ctx context.Context, fresh bool) (listing, error) {
	s.mu.Lock()
	follows := s.stream != nil
	s.mu.Unlock()
	if !follows { // two empty copies would fetch from each other
		return listing{}, errNotFollowing
	}
	if fresh {
		if err := s.CatchUp(ctx); err != nil {
			return listing{}, err
		}
	}
	c := &s.checkpoints
	c.createMu.Lock()
	defer c.createMu.Unlock()
	if v := c.recent(); v != nil && !fresh {
		if time.Since(v.verifiedAt) >= reverifyTimeout {
			if err := s.verifyCheckpoint(ctx, v.dir, 0); err != nil {
				return listing{}, err
			}
			v.verifiedAt = time.Now()
		}
		return v.listing, nil
	}
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	v := &servedCheckpoint{listing: listing{ID: hex.EncodeToString(random[:])}, createdAt: time.Now()}
	v.dir = filepath.Join(s.checkpointDir(), v.ID)
	if err := s.disk.MakeDir(s.checkpointDir()); err != nil {
		return listing{}, err
	}
	if err := s.verifiedCheckpoint(ctx, v.dir); err != nil {
		return listing{}, errors.Join(err, s.disk.Remove(v.dir))
	}
	var err error
	if v.Files, err = listFiles(ctx, s.disk, v.dir); err != nil {
		return listing{}, errors.Join(err, s.disk.Remove(v.dir))
	}
	v.lastUsed, v.verifiedAt = time.Now(), time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = make(map[string]*servedCheckpoint)
	}
	c.all[v.ID] = v
	return v.listing, nil
}

// verifiedCheckpoint writes a checkpoint and verifies it.
func (s *Shard) verifiedCheckpoint(ctx context.Context, dir string) error {
	before, err := s.storePosition()
	if err == nil {
		err = s.checkpoint(ctx, dir)
	}
	if err != nil {
		return err
	}
	return s.verifyCheckpoint(ctx, dir, before.seq)
}

// verifyCheckpoint verifies all files of a checkpoint, which are those of the store, and that it contains the
// log up to a message. Damage that it finds is damage of this member's copy.
func (s *Shard) verifyCheckpoint(ctx context.Context, dir string, atLeast uint64) error {
	s.storeMu.RLock()
	store := s.store
	s.storeMu.RUnlock()
	if store == nil {
		return engine.ErrClosed
	}
	position, err := store.VerifyCheckpoint(ctx, dir)
	var at logPosition
	if err == nil {
		at, err = decodeLogPosition(position)
	}
	if err == nil && at.seq < atLeast {
		err = &pebble.FileDamage{File: "MANIFEST", Err: fmt.Errorf(
			"checkpoint of the store has the log up to message %d, the store had it up to %d", at.seq, atLeast)}
	}
	var found *pebble.FileDamage
	if errors.As(err, &found) {
		s.storeMu.RLock()
		defer s.storeMu.RUnlock()
		if s.store != nil {
			s.store.ReportDamage(found)
		}
	}
	return err
}

func listFiles(ctx context.Context, disk pebble.Disk, dir string) ([]fileInfo, error) {
	names, err := disk.List(dir)
	if err != nil {
		return nil, err
	}
	var files []fileInfo
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if name == "LOCK" { // of the verification
			continue
		}
		size, sum, err := sumFile(disk, filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		files = append(files, fileInfo{Name: name, Size: size, Sum: sum})
	}
	return files, nil
}

func newSum() hash.Hash32 { return crc32.New(castagnoli) }

// sumFile returns the size and the checksum of a file.
func sumFile(disk pebble.Disk, path string) (int64, string, error) {
	f, err := disk.Open(path)
	if err != nil {
		return 0, "", err
	}
	sum := newSum()
	n, err := io.Copy(sum, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, "", err
	}
	return n, hex.EncodeToString(sum.Sum(nil)), nil
}

// serveFile serves a file of a checkpoint, or a part of it.
func (s *Shard) serveFile(w http.ResponseWriter, r *http.Request) {
	c := &s.checkpoints
	c.mu.Lock()
	v := c.all[r.PathValue("id")]
	known := false
	if v != nil {
		for _, f := range v.Files {
			known = known || f.Name == r.PathValue("file")
		}
	}
	if known {
		v.readers++
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			v.readers--
			v.lastUsed = time.Now()
		}()
	}
	c.mu.Unlock()
	if !known {
		http.Error(w, "checkpoint or file no longer exists; request a new checkpoint", http.StatusNotFound)
		return
	}
	f, err := s.disk.Open(filepath.Join(v.dir, r.PathValue("file")))
	if err != nil {
		http.Error(w, "reading the checkpoint file failed", http.StatusServiceUnavailable)
		return
	}
	defer func() { _ = f.Close() }() // opened for reading only
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", time.Time{}, f)
}

// sweep removes checkpoints that have no reader and were last used before the given time.
func (c *checkpoints) sweep(disk pebble.Disk, after time.Duration) error {
	c.mu.Lock()
	var old []string
	for id, v := range c.all {
		if v.readers == 0 && time.Since(v.lastUsed) >= after {
			old = append(old, v.dir)
			delete(c.all, id)
		}
	}
	c.mu.Unlock()
	var err error
	for _, dir := range old {
		err = errors.Join(err, disk.Remove(dir))
	}
	if err != nil {
		return fmt.Errorf("removing a checkpoint: %w", err)
	}
	return nil
}
