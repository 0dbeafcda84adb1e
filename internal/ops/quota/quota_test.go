package quota_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/ops/quota"
)

// testCluster is a cluster that creates resources and counts them.
type testCluster struct {
	*quota.Cluster
	created [quota.Count]atomic.Int64
}

func open(o *quota.Organization, name string, limits quota.Limits) *testCluster {
	s := &testCluster{Cluster: o.Open(name, limits)}
	s.SetCounter(func(r quota.Resource) int64 { return s.created[r].Load() })
	return s
}

// create creates n of a resource if the quota allows it.
func (s *testCluster) create(ctx context.Context, r quota.Resource, n int64) error {
	room, err := s.Reserve(ctx, r, n)
	if err != nil {
		return err
	}
	defer room.Release()
	s.created[r].Add(n)
	return nil
}

// TestReserveUnderConcurrency: concurrent callers create exactly as many resources as the
// limit allows, over all clusters of an organization.
func TestReserveUnderConcurrency(t *testing.T) {
	t.Parallel()
	book := quota.New(quota.Limits{quota.Topics: 100}, map[string]quota.Limits{"large": {quota.Topics: 1000}})
	o := book.Organization("acme")
	shops := []*testCluster{
		open(o, "a", quota.Limits{}), open(o, "b", quota.Limits{}),
		open(o, "c", quota.Limits{quota.Topics: 10}),
	}
	var made, refused atomic.Int64
	var group sync.WaitGroup
	for i := range 300 {
		group.Go(func() {
			err := shops[i%3].create(t.Context(), quota.Topics, 1)
			switch {
			case err == nil:
				made.Add(1)
			case errs.KindOf(err) == errs.Exhausted:
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	group.Wait()
	if made.Load() != 100 || refused.Load() != 200 || o.Used(quota.Topics) != 100 {
		t.Errorf("got %d created, %d rejected, %d used, want 100, 200 and 100", made.Load(), refused.Load(),
			o.Used(quota.Topics))
	}
	if n := shops[2].Used(quota.Topics); n > 10 {
		t.Errorf("cluster with a limit of 10 topics has %d", n)
	}
	if n := o.Rejections()[quota.Topics]; n != 200 {
		t.Errorf("got %d rejections, want 200", n)
	}
	err := shops[0].create(t.Context(), quota.Topics, 2)
	if err == nil || !strings.Contains(err.Error(),
		"organization acme uses 100 of 100 topics and 2 more would be needed") {
		t.Errorf("got %v, want an error with the numbers", err)
	}
	shops[0].created[quota.Topics].Add(-2) // deleted
	if err := shops[1].create(t.Context(), quota.Topics, 2); err != nil {
		t.Errorf("after two were deleted: got %v, want no error", err)
	}
	shops[0].Close()
	if err := shops[1].create(t.Context(), quota.Topics, 1); err != nil {
		t.Errorf("after a cluster was deleted: got %v, want no error", err)
	}
	if err := open(book.Organization("large"), "x", quota.Limits{}).create(t.Context(), quota.Topics, 500); err != nil {
		t.Errorf("organization with a limit of its own: got %v, want no error", err)
	}
	book.Change(quota.Limits{}, nil)
	if err := shops[1].create(t.Context(), quota.Topics, 5000); err != nil {
		t.Errorf("without a limit: got %v, want no error", err)
	}
}

// TestReserveWaitsForOthers: Reserve waits for pending reservations if the result depends
// on them.
func TestReserveWaitsForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(quota.New(quota.Limits{quota.Subjects: 2}, nil).Organization("acme"), "a", quota.Limits{})
		first, err := s.Reserve(t.Context(), quota.Subjects, 2)
		if err != nil {
			t.Fatal(err)
		}
		outcome := make(chan error)
		go func() { outcome <- s.create(t.Context(), quota.Subjects, 1) }()
		synctest.Wait()
		select {
		case err := <-outcome:
			t.Fatalf("got %v while the first reservation is pending, want Reserve to wait", err)
		default:
		}
		first.Release() // nothing was created
		if err := <-outcome; err != nil {
			t.Errorf("after Done: got %v, want no error", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if first, err = s.Reserve(ctx, quota.Subjects, 1); err != nil {
			t.Fatal(err)
		}
		go func() { outcome <- s.create(ctx, quota.Subjects, 1) }()
		synctest.Wait()
		cancel()
		if err := <-outcome; !errors.Is(err, context.Canceled) {
			t.Errorf("canceled caller: got %v, want %v", err, context.Canceled)
		}
		first.Release()
	})
}

func TestPendingBytesCount(t *testing.T) {
	t.Parallel()
	o := quota.New(quota.Limits{quota.StoredBytes: 100}, nil).Organization("acme")
	a, b := open(o, "a", quota.Limits{quota.StoredBytes: 60}), open(o, "b", quota.Limits{})
	want := func(what string, got error, ok bool) {
		t.Helper()
		if (got == nil) != ok || !ok && errs.KindOf(got) != errs.Exhausted {
			t.Errorf("%s: got %v, want allowed %v", what, got, ok)
		}
	}
	want("60 of 60", a.ReserveBytes(60), true)
	want("one more than the cluster's", a.ReserveBytes(1), false)
	want("41 while 60 are pending", b.ReserveBytes(41), false)
	want("40", b.ReserveBytes(40), true)
	a.created[quota.StoredBytes].Store(60)
	a.ReleaseBytes(60)
	want("full", b.ReserveBytes(1), false)
	b.ReleaseBytes(40) // storing failed
	want("40 again", b.ReserveBytes(40), true)
}

// TestMemoryLimitsPendingBytes checks that a cluster buffers no more than its memory, and that stored bytes do
// not count.
func TestMemoryLimitsPendingBytes(t *testing.T) {
	t.Parallel()
	c := open(quota.New(quota.Limits{}, nil).Organization("acme"), "a", quota.Limits{})
	c.created[quota.StoredBytes].Store(1000)
	c.SetMemory(100)
	if err := c.ReserveBytes(60); err != nil {
		t.Fatal(err)
	}
	if err := c.ReserveBytes(41); !errors.Is(err, quota.ErrBuffersFull) || errs.KindOf(err) != errs.Unavailable ||
		!strings.Contains(err.Error(), "is storing 60 bytes and its spec.broker.resources.memory is 100") {
		t.Errorf("more than the memory: got %v, want %v with the numbers", err, quota.ErrBuffersFull)
	}
	if err := c.ReserveBytes(40); err != nil {
		t.Errorf("all of the memory: got %v, want no error", err)
	}
	c.ReleaseBytes(100)
	c.SetMemory(0)
	if err := c.ReserveBytes(1000); err != nil {
		t.Errorf("without a limit: got %v, want no error", err)
	}
}

func TestRates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		book := quota.New(quota.Limits{quota.RequestsPerSecond: 100, quota.BytesPerSecond: 1000}, nil)
		c := book.Organization("acme").Open("a", quota.Limits{})
		other := book.Organization("other").Open("a", quota.Limits{})
		time.Sleep(time.Hour) // a bucket has the tokens of one second only, even after an idle hour
		admitted := 0
		var err error
		for range 1000 {
			if err = c.Admit(); err == nil {
				admitted++
			}
		}
		var throttled *quota.Throttled
		if admitted != 100 || !errors.As(err, &throttled) || throttled.After != 10*time.Millisecond {
			t.Errorf("got %d admitted, then %v, want 100 and a retry after 10ms", admitted, err)
		}
		if err := other.Admit(); err != nil {
			t.Errorf("other organization: got %v, want no error", err)
		}
		time.Sleep(throttled.After)
		if err := c.Admit(); err != nil {
			t.Errorf("10ms later: got %v, want no error", err)
		}
		time.Sleep(time.Second)
		c.Charge(5000) // a large message was admitted
		err = c.Admit()
		if !errors.As(err, &throttled) || throttled.After != 4*time.Second || c.Pause() != 4*time.Second {
			t.Errorf("5000 bytes at 1000 per second: got %v and a pause of %v, want 4s", err, c.Pause())
		}
		time.Sleep(4 * time.Second)
		if err := c.Admit(); err != nil {
			t.Errorf("4s later: got %v, want no error", err)
		}
	})
}

func TestParseKey(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]int64{
		"1": 1, "20000": 20000, "5Gi": 5 << 30, "0": 0, "-1": 0, "": 0, "many": 0,
		"1.5": 0, "9999999999Ti": 0,
	} {
		r, n, ok, err := quota.ParseKey("quota.storedBytes", value)
		if r != quota.StoredBytes || n != want || !ok || (err == nil) != (want > 0) {
			t.Errorf("%q: got %v, %d, %v, %v, want %d", value, r, n, ok, err, want)
		}
	}
	if _, _, ok, err := quota.ParseKey("quota.clusters", "x"); ok || err != nil {
		t.Errorf("key that is not a quota of clusters: got %v, %v, want false and no error", ok, err)
	}
}

// BenchmarkAdmit measures the cost of quotas for a message within them.
func BenchmarkAdmit(b *testing.B) {
	limits := quota.Limits{quota.RequestsPerSecond: 1 << 40, quota.BytesPerSecond: 1 << 50, quota.StoredBytes: 1 << 60}
	s := open(quota.New(limits, nil).Organization("acme"), "a", quota.Limits{})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if s.Admit() != nil || s.ReserveBytes(1024) != nil {
				b.Error("message was rejected, want it admitted")
			}
			s.Charge(1024)
			s.ReleaseBytes(1024)
		}
	})
}
