package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/api/v3/version"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"freshet/internal/base/retry"
)

// Values in the tree have no checksums, so a member compares its content with that of the others: when
// it starts, and after every compaction, for which etcd computes a checksum of all keys anyway. A member
// whose content differs from that of a majority is damaged. It stops, and only that member does.
//
// etcd's own checks use the same checksums, but not a majority's decision: the check at the start keeps a
// good member from starting because of a damaged other one, and the one at runtime raises an alarm, during
// which no member reads or writes (docs/adr/0052-etcd-damage-and-rejoining.md).

const (
	// hashTimeout bounds the request for a checksum, for which the other member reads its whole tree,
	// versionTimeout that for its version.
	hashTimeout    = 30 * time.Second
	versionTimeout = 2 * time.Second
	// compareRetryTime is how long a comparison is repeated that failed because a member was behind or
	// compacted meanwhile, compareRetryInterval the time between two attempts.
	compareRetryTime     = 5 * time.Second
	compareRetryInterval = 100 * time.Millisecond
	// compactionCompareInterval is how often a running member looks for a compaction to compare.
	compactionCompareInterval = 10 * time.Second
	// maxCompactionTries bounds the comparisons of one compaction. A member that was restarted since has no
	// checksum of it, and would read its whole tree for each request.
	maxCompactionTries = 3
	maxVersionBytes    = 4 << 10
)

// verdict is the result of a comparison.
type verdict int

const (
	undecided verdict = iota // too few members have responded, or no content has a majority
	unready                  // undecided, and another attempt may decide
	agrees                   // a majority, this member included, has the same content
	differs                  // a majority without this member has the same content
)

// comparer compares the content of a member with that of the others.
type comparer struct {
	server *etcdserver.EtcdServer
	via    *http.Transport
	client *http.Client
	log    *slog.Logger
	last   int64 // revision of the last compaction that was compared
	tries  int   // comparisons of the compaction after it
}

// newComparer returns the comparer of a started member. The caller closes it.
func (g *Ensemble) newComparer(e *embed.Etcd, log *slog.Logger) (*comparer, error) {
	via, err := transport.NewTransport(g.tls(), versionTimeout)
	if err != nil {
		return nil, fmt.Errorf("reading the certificates for etcd: %w", err)
	}
	return &comparer{server: e.Server, via: via, client: &http.Client{Transport: via}, log: log}, nil
}

func (c *comparer) close() { c.via.CloseIdleConnections() }

// damage compares the whole content with that of the others and returns what is wrong with this member's;
// nil if nothing is known. The second comparison, with new checksums, confirms the first.
func (c *comparer) damage(ctx context.Context) error {
	var cause error
	for range 2 {
		was, err := c.compareNow(ctx)
		if was != differs {
			return nil
		}
		cause = err
	}
	return cause
}

// compareNow compares the current content. It repeats the comparison while a member is behind.
func (c *comparer) compareNow(ctx context.Context) (verdict, error) {
	for began := time.Now(); ; {
		own, _, err := c.server.KV().HashStorage().HashByRev(0)
		if err != nil {
			c.log.Warn("content of etcd could not be compared with that of the other members", slog.Any("error", err))
			return undecided, nil
		}
		was, err := c.compare(ctx, own)
		if was != unready || time.Since(began) > compareRetryTime || retry.Sleep(ctx, compareRetryInterval) != nil {
			return was, err
		}
	}
}

// compareCompaction compares the content as of the last compaction, if there was one since the last call.
func (c *comparer) compareCompaction(ctx context.Context) verdict {
	hashes := c.server.KV().HashStorage().Hashes()
	if len(hashes) == 0 {
		return agrees
	}
	newest := slices.MaxFunc(hashes, func(a, b mvcc.KeyValueHash) int { return int(a.Revision - b.Revision) })
	if newest.Revision <= c.last {
		return agrees
	}
	was, _ := c.compare(ctx, newest)
	if c.tries++; was == agrees || was == differs || c.tries >= maxCompactionTries {
		c.last, c.tries = newest.Revision, 0
	}
	return was
}

// compare compares the content of this member at a revision with that of the others. For differs, the
// error describes the difference.
func (c *comparer) compare(ctx context.Context, own mvcc.KeyValueHash) (verdict, error) {
	members := slices.DeleteFunc(c.server.Cluster().Members(), func(m *membership.Member) bool { return m.IsLearner })
	results := make([]comparedHash, len(members))
	var asked sync.WaitGroup
	for i, m := range members {
		if m.ID != c.server.MemberID() && len(m.PeerURLs) > 0 {
			asked.Go(func() { results[i] = c.hashOf(ctx, m, own) })
		}
	}
	asked.Wait()
	votes, again := map[uint32][]string{}, false
	for i, r := range results {
		again = again || r.behind
		if r.comparable {
			votes[r.sum] = append(votes[r.sum], members[i].Name)
		}
	}
	majority := len(members)/2 + 1
	if len(votes[own.Hash])+1 >= majority {
		return agrees, nil
	}
	for sum, names := range votes {
		if sum != own.Hash && len(names) >= majority {
			slices.Sort(names)
			return differs, fmt.Errorf("member/snap/db: content differs from that of members %s at revision %d",
				strings.Join(names, ", "), own.Revision)
		}
	}
	if again {
		return unready, nil
	}
	return undecided, nil
}

// comparedHash is the checksum of a member's content. The zero value is that of a member that does not
// respond.
type comparedHash struct {
	sum        uint32
	comparable bool // sum is valid
	behind     bool // the member is behind or ahead of this one, so that it cannot be compared now
}

// hashOf requests the checksum of a member's content at the revision of own. The checksums of different
// versions of etcd are not compared.
func (c *comparer) hashOf(ctx context.Context, of *membership.Member, own mvcc.KeyValueHash) comparedHash {
	if c.checkVersion(ctx, of.PeerURLs[0]) != nil {
		return comparedHash{}
	}
	ctx, cancel := context.WithTimeout(ctx, hashTimeout)
	defer cancel()
	response, err := etcdserver.HashByRev(ctx, c.server.Cluster().ID(), c.client, of.PeerURLs[0], own.Revision)
	switch {
	case errors.Is(err, rpctypes.ErrFutureRev), errors.Is(err, rpctypes.ErrCompacted):
		return comparedHash{behind: true}
	case err != nil:
		return comparedHash{}
	case response.CompactRevision != own.CompactRevision || response.HashRevision != own.Revision:
		return comparedHash{behind: true}
	}
	return comparedHash{sum: response.Hash, comparable: true}
}

// checkVersion returns an error unless the member at an address runs the same version of etcd.
func (c *comparer) checkVersion(ctx context.Context, at string) error {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"/version", http.NoBody)
	if err != nil {
		return err
	}
	response, err := c.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // the body was read, or is not needed
	var runs version.Versions
	if err := json.NewDecoder(io.LimitReader(response.Body, maxVersionBytes)).Decode(&runs); err != nil {
		return err
	}
	if runs.Server != version.Version {
		return fmt.Errorf("member runs etcd %q, and this one %q", runs.Server, version.Version)
	}
	return nil
}

// watchContent compares the content after each compaction, until the member is closed or damaged.
func (m *Member) watchContent(c *comparer, opts Options) {
	defer close(m.compareDone)
	defer c.close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-m.closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	tick := time.NewTicker(compactionCompareInterval)
	defer tick.Stop()
	for {
		select {
		case <-m.closed:
			return
		case <-tick.C:
		}
		if c.compareCompaction(ctx) != differs {
			continue
		}
		cause := c.damage(ctx)
		if cause == nil {
			c.log.Warn("content of etcd differed from that of the other members after a compaction; a second " +
				"comparison has not confirmed it; comparing again after the next one")
			continue
		}
		if opts.ReportDamage != nil {
			opts.ReportDamage(cause)
		}
		m.fail(opts.damagedError(m.dir, cause))
		return
	}
}
