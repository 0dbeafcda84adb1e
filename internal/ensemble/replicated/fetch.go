package replicated

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"freshet/internal/base/retry"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
)

const (
	maxFetchAttempts = 5   // for one file; each continues where the last one ended
	maxFiles         = 1e6 // in a checkpoint
	maxListing       = 256 << 20
	partSuffix       = ".part"
)

// bootstrap replaces the store with a checkpoint of another member. A fresh one is not an earlier one that
// the log may no longer continue.
func (s *Shard) bootstrap(ctx context.Context, f *follower, fresh bool) error {
	if s.o.Peers == nil {
		return fmt.Errorf("%w: %w", engine.ErrLogLost, errBehind)
	}
	// From now on the owner keeps the log for this copy, because it has flushed nothing.
	if err := s.publishStatus(ctx, replicaStatus{}); err != nil {
		return err
	}
	if _, err := s.fetchAny(ctx, s.fetchDir(), fresh); err != nil {
		return fmt.Errorf("%w; fetching it failed: %w", errBehind, err)
	}
	return s.adopt(f)
}

// fetchAny copies a checkpoint of another member's store to a directory, verifies it, and returns its
// position. A fresh checkpoint has everything that was in the log before the call.
func (s *Shard) fetchAny(ctx context.Context, dir string, fresh bool) (at logPosition, err error) {
	if s.o.Peers == nil {
		return at, errNoPeers
	}
	owner, ranked := s.Owner().Member, s.ranked()
	s.mu.Lock()
	ranked = slices.DeleteFunc(ranked, func(name string) bool { // a copy without content is useless
		return name == s.o.Member || name != owner && s.view.copies[name].Applied == 0
	})
	s.mu.Unlock()
	var failures error
	for _, last := range []bool{false, true} { // the owner last, because it has the most load
		for _, name := range ranked {
			if (name == owner) != last {
				continue
			}
			at, err := s.fetchFrom(ctx, name, dir, fresh)
			if err == nil {
				return at, nil
			}
			failures = errors.Join(failures, fmt.Errorf("from member %q: %w", name, err))
		}
	}
	if failures == nil {
		failures = errors.New("no other live member has a copy")
	}
	return at, failures
}

var errNoPeers = errors.New("no connection to other members is configured")

// peer returns the HTTP client for a member and the URL of its copy of this shard.
func (s *Shard) peer(member string) (via *http.Client, base string, err error) {
	if s.o.Peers == nil {
		return nil, "", errNoPeers
	}
	via, base, err = s.o.Peers.Call(member)
	if err != nil {
		return nil, "", err
	}
	return via, base + Path + "/" + url.PathEscape(s.o.Cluster) + "/" + strconv.Itoa(s.o.Number), nil
}

func (s *Shard) fetchDir() string { return s.o.Dir + ".fetch" }

// fetchFrom fetches a checkpoint from a member. The checksums of the transfer are those of the member's files
// as they are, so it also verifies the checksums that the blocks got when they were written.
func (s *Shard) fetchFrom(ctx context.Context, member, dir string, fresh bool) (at logPosition, err error) {
	via, base, err := s.peer(member)
	if err != nil {
		return at, err
	}
	begin := time.Now()
	fetched, err := fetch(ctx, via, base+"/checkpoint", fresh, s.disk, dir, s.o.FetchBytes)
	if err != nil {
		return at, err
	}
	position, err := s.disk.VerifyClosed(ctx, dir)
	if err == nil {
		at, err = decodeLogPosition(position)
	}
	if err != nil {
		return at, errors.Join(fmt.Errorf("verifying the fetched checkpoint: %w", err), s.disk.Remove(dir))
	}
	s.log.Info("fetched a checkpoint of the shard from another member", slog.String("from", member),
		slog.Int64("bytes", fetched), slog.Duration("took", time.Since(begin).Round(time.Millisecond)))
	return at, nil
}

// adopt replaces the store with the fetched checkpoint and opens it.
func (s *Shard) adopt(f *follower) error {
	s.lockToClose()
	defer s.storeMu.Unlock()
	err := s.store.Close()
	s.store = nil
	err = errors.Join(err, s.markFetched(s.fetchDir()), s.disk.ReplaceStore(s.fetchDir(), s.o.Dir))
	if err != nil {
		return fmt.Errorf("%w: installing a fetched checkpoint: %w", engine.ErrFailed, err)
	}
	if err := s.openLocked(); err != nil {
		return fmt.Errorf("%w: opening a fetched checkpoint: %w", engine.ErrFailed, err)
	}
	s.store.SetVerified() // fetchFrom has verified it
	s.setVerified(true)
	f.store = s.store
	return f.resume()
}

// fetch copies the checkpoint that a member's handler serves under base to dir, limited to
// perSecond bytes per second. It reuses files of an interrupted fetch. It returns the number
// of bytes fetched.
func fetch(ctx context.Context, via *http.Client, base string, fresh bool, disk pebble.Disk, dir string,
	perSecond int64,
) (int64, error) {
	f := &fetcher{client: via, base: base, disk: disk, dir: dir, perSecond: perSecond, begin: time.Now()}
	list, err := f.list(ctx, fresh)
	if err != nil {
		return 0, err
	}
	if err := f.removeStale(list); err != nil {
		return 0, err
	}
	for _, file := range list.Files {
		if err := f.fetchFile(ctx, list.ID, file); err != nil {
			return f.fetched, fmt.Errorf("file %s of the checkpoint: %w", file.Name, err)
		}
	}
	return f.fetched, disk.SyncDir(dir)
}

type fetcher struct {
	client    *http.Client
	base      string
	disk      pebble.Disk
	dir       string
	perSecond int64
	begin     time.Time
	fetched   int64
}

func (f *fetcher) get(ctx context.Context, url string, from int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if from > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return nil, err
	}
	want := http.StatusOK
	if from > 0 {
		want = http.StatusPartialContent
	}
	if resp.StatusCode != want {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		_ = resp.Body.Close()
		return nil, &statusError{resp.StatusCode, strings.TrimSpace(string(text))}
	}
	return resp, nil
}

// statusError is a response that a retry would not change.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return fmt.Sprintf("member returned %d: %s", e.status, e.text) }

func (f *fetcher) list(ctx context.Context, fresh bool) (listing, error) {
	at := f.base
	if fresh {
		at += "?" + queryFresh
	}
	resp, err := f.get(ctx, at, 0)
	if err != nil {
		return listing{}, err
	}
	defer resp.Body.Close()
	var list listing
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxListing)).Decode(&list); err != nil {
		return listing{}, fmt.Errorf("decoding the list of a checkpoint's files: %w", err)
	}
	if len(list.Files) == 0 || len(list.Files) > maxFiles {
		return listing{}, fmt.Errorf("checkpoint has %d files, want 1 to %d", len(list.Files), int(maxFiles))
	}
	for _, file := range list.Files {
		if file.Name != filepath.Base(file.Name) || strings.HasPrefix(file.Name, ".") ||
			strings.HasSuffix(file.Name, partSuffix) {
			return listing{}, fmt.Errorf("checkpoint contains a file with the invalid name %q", file.Name)
		}
	}
	return list, nil
}

// removeStale removes files that do not belong to this checkpoint.
func (f *fetcher) removeStale(list listing) error {
	if err := f.disk.MakeDir(f.dir); err != nil {
		return err
	}
	listed := make(map[string]bool, len(list.Files))
	for _, file := range list.Files {
		listed[file.Name] = true
	}
	names, err := f.disk.List(f.dir)
	for _, name := range names {
		if !listed[strings.TrimSuffix(name, partSuffix)] {
			err = errors.Join(err, f.disk.Remove(filepath.Join(f.dir, name)))
		}
	}
	return err
}

// fetchFile fetches a file unless it exists with the right checksum.
func (f *fetcher) fetchFile(ctx context.Context, id string, file fileInfo) error {
	path := filepath.Join(f.dir, file.Name)
	if size, sum, err := sumFile(f.disk, path); err == nil {
		if size == file.Size && sum == file.Sum {
			return nil
		}
		if err := f.disk.Remove(path); err != nil {
			return err
		}
	}
	part := path + partSuffix
	var err error
	for try := range maxFetchAttempts {
		if err = f.fetchMissing(ctx, f.base+"/"+id+"/"+url.PathEscape(file.Name), part, file.Size); err == nil {
			var sum string
			if _, sum, err = sumFile(f.disk, part); err == nil && sum == file.Sum {
				return f.disk.Rename(part, path)
			}
			// The part from an interrupted fetch belonged to another file.
			err = errors.Join(errors.New("checksum differs from the list"), err, f.disk.Remove(part))
		}
		var refused *statusError
		if ctx.Err() != nil || errors.As(err, &refused) {
			return err
		}
		_ = retry.Sleep(ctx, time.Duration(try+1)*100*time.Millisecond)
	}
	return err
}

// fetchMissing fetches the missing part of a file.
func (f *fetcher) fetchMissing(ctx context.Context, url, part string, size int64) error {
	return f.disk.Continue(part, size, func(out io.Writer, from int64) error {
		if from == size {
			return nil
		}
		resp, err := f.get(ctx, url, from)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		for from < size {
			n, err := io.CopyN(out, resp.Body, min(256<<10, size-from))
			from += n
			f.fetched += n
			if err != nil {
				return err
			}
			f.throttle(ctx)
		}
		return nil
	})
}

// throttle waits while the transfer is ahead of its rate.
func (f *fetcher) throttle(ctx context.Context) {
	due := time.Duration(float64(f.fetched) / float64(f.perSecond) * float64(time.Second))
	if ahead := due - time.Since(f.begin); ahead > 10*time.Millisecond {
		_ = retry.Sleep(ctx, ahead) // the next request fails if the context has ended
	}
}
