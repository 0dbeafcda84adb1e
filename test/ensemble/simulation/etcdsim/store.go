package etcdsim

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// Store is the simulated etcd.
type Store struct {
	mu        sync.Mutex // protects the fields below
	random    *rand.Rand
	silent    float64 // probability that a response is lost
	revision  int64
	keys      map[string]*mvccpb.KeyValue
	events    []*mvccpb.Event // all of them, in order of their revisions
	changed   chan struct{}   // closed and replaced at an event
	leases    map[int64]*lease
	nextLease int64
	closed    chan struct{}
	wg        sync.WaitGroup
}

type lease struct {
	ttl  time.Duration
	ends time.Time
}

// New returns an empty store whose faults depend on the seed.
func New(seed uint64) *Store {
	return &Store{
		random: rand.New(rand.NewPCG(seed, 2)), revision: 1, //nolint:gosec // a simulation
		keys: map[string]*mvccpb.KeyValue{}, changed: make(chan struct{}), leases: map[int64]*lease{},
		nextLease: 1000, closed: make(chan struct{}),
	}
}

// SetSilent sets the probability that a response is lost after the call had its effect.
func (s *Store) SetSilent(p float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = p
}

// Close ends the store's goroutines.
func (s *Store) Close() {
	close(s.closed)
	s.wg.Wait()
}

// Expire ends the lease of a key before its time, as a clock that is too fast does.
func (s *Store) Expire(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kv := s.keys[key]; kv != nil {
		s.revokeLocked(kv.Lease)
	}
}

func (s *Store) headerLocked() *etcdserverpb.ResponseHeader {
	return &etcdserverpb.ResponseHeader{ClusterId: 1, MemberId: 1, Revision: s.revision, RaftTerm: 2}
}

// inRange reports whether a key is in the range of a request.
func inRange(key, from, end []byte) bool {
	switch {
	case len(end) == 0:
		return bytes.Equal(key, from)
	case len(end) == 1 && end[0] == 0:
		return bytes.Compare(key, from) >= 0
	}
	return bytes.Compare(key, from) >= 0 && bytes.Compare(key, end) < 0
}

func (s *Store) selectLocked(from, end []byte) []*mvccpb.KeyValue {
	var found []*mvccpb.KeyValue
	for _, key := range slices.Sorted(maps.Keys(s.keys)) {
		if inRange([]byte(key), from, end) {
			found = append(found, s.keys[key])
		}
	}
	return found
}

func (s *Store) rangeLocked(r *etcdserverpb.RangeRequest) *etcdserverpb.RangeResponse {
	found := s.selectLocked(r.Key, r.RangeEnd)
	out := &etcdserverpb.RangeResponse{Header: s.headerLocked(), Count: int64(len(found))}
	if r.CountOnly {
		return out
	}
	if r.Limit > 0 && int64(len(found)) > r.Limit {
		found, out.More = found[:r.Limit], true
	}
	out.Kvs = found // values are never changed, only replaced
	return out
}

func (s *Store) putLocked(r *etcdserverpb.PutRequest) *etcdserverpb.PutResponse {
	out := &etcdserverpb.PutResponse{}
	was := s.keys[string(r.Key)]
	kv := &mvccpb.KeyValue{
		Key: r.Key, Value: r.Value, Lease: r.Lease, CreateRevision: s.revision, ModRevision: s.revision, Version: 1,
	}
	if was != nil {
		kv.CreateRevision, kv.Version = was.CreateRevision, was.Version+1
		if r.PrevKv {
			out.PrevKv = was
		}
	}
	s.keys[string(r.Key)] = kv
	s.eventLocked(&mvccpb.Event{Type: mvccpb.Event_PUT, Kv: kv, PrevKv: was})
	return out
}

func (s *Store) deleteLocked(r *etcdserverpb.DeleteRangeRequest) *etcdserverpb.DeleteRangeResponse {
	out := &etcdserverpb.DeleteRangeResponse{}
	for _, kv := range s.selectLocked(r.Key, r.RangeEnd) {
		delete(s.keys, string(kv.Key))
		s.eventLocked(&mvccpb.Event{
			Type: mvccpb.Event_DELETE, Kv: &mvccpb.KeyValue{Key: kv.Key, ModRevision: s.revision}, PrevKv: kv,
		})
		out.Deleted++
	}
	return out
}

func (s *Store) eventLocked(e *mvccpb.Event) {
	s.events = append(s.events, e)
	close(s.changed)
	s.changed = make(chan struct{})
}

// hasLeaseLocked reports whether the lease of a put exists, or the put has none.
func (s *Store) hasLeaseLocked(r *etcdserverpb.PutRequest) bool {
	return r == nil || r.Lease == 0 || s.leases[r.Lease] != nil
}

// txnLocked executes a transaction. All its writes have the same revision. It returns nil, and changes nothing,
// if a write needs a lease that does not exist.
func (s *Store) txnLocked(r *etcdserverpb.TxnRequest) *etcdserverpb.TxnResponse {
	out := &etcdserverpb.TxnResponse{Succeeded: !slices.ContainsFunc(r.Compare, func(c *etcdserverpb.Compare) bool {
		return !s.holdsLocked(c)
	})}
	operations := r.Failure
	if out.Succeeded {
		operations = r.Success
	}
	if slices.ContainsFunc(operations, func(op *etcdserverpb.RequestOp) bool {
		return !s.hasLeaseLocked(op.GetRequestPut())
	}) {
		return nil
	}
	for _, op := range operations {
		out.Responses = append(out.Responses, s.operationLocked(op))
	}
	out.Header = s.headerLocked()
	return out
}

func (s *Store) operationLocked(op *etcdserverpb.RequestOp) *etcdserverpb.ResponseOp {
	switch r := op.Request.(type) {
	case *etcdserverpb.RequestOp_RequestPut:
		return &etcdserverpb.ResponseOp{Response: &etcdserverpb.ResponseOp_ResponsePut{
			ResponsePut: s.putLocked(r.RequestPut),
		}}
	case *etcdserverpb.RequestOp_RequestDeleteRange:
		return &etcdserverpb.ResponseOp{Response: &etcdserverpb.ResponseOp_ResponseDeleteRange{
			ResponseDeleteRange: s.deleteLocked(r.RequestDeleteRange),
		}}
	case *etcdserverpb.RequestOp_RequestRange:
		return &etcdserverpb.ResponseOp{Response: &etcdserverpb.ResponseOp_ResponseRange{
			ResponseRange: s.rangeLocked(r.RequestRange),
		}}
	}
	panic("nested transactions are not simulated")
}

// holdsLocked reports whether a condition of a transaction holds.
func (s *Store) holdsLocked(c *etcdserverpb.Compare) bool {
	kv := s.keys[string(c.Key)]
	if kv == nil {
		if c.Target == etcdserverpb.Compare_VALUE {
			return false
		}
		kv = &mvccpb.KeyValue{}
	}
	order := 0
	compare := func(have, want int64) {
		switch {
		case have < want:
			order = -1
		case have > want:
			order = 1
		}
	}
	switch c.Target {
	case etcdserverpb.Compare_VERSION:
		compare(kv.Version, c.GetVersion())
	case etcdserverpb.Compare_CREATE:
		compare(kv.CreateRevision, c.GetCreateRevision())
	case etcdserverpb.Compare_MOD:
		compare(kv.ModRevision, c.GetModRevision())
	case etcdserverpb.Compare_LEASE:
		compare(kv.Lease, c.GetLease())
	case etcdserverpb.Compare_VALUE:
		order = bytes.Compare(kv.Value, c.GetValue())
	}
	switch c.Result {
	case etcdserverpb.Compare_EQUAL:
		return order == 0
	case etcdserverpb.Compare_GREATER:
		return order > 0
	case etcdserverpb.Compare_LESS:
		return order < 0
	}
	return order != 0
}

// revokeLocked ends a lease and removes its keys.
func (s *Store) revokeLocked(id int64) {
	if s.leases[id] == nil {
		return
	}
	delete(s.leases, id)
	for _, key := range slices.Sorted(maps.Keys(s.keys)) {
		if s.keys[key].Lease == id {
			s.revision++
			s.deleteLocked(&etcdserverpb.DeleteRangeRequest{Key: []byte(key)})
		}
	}
}

// watchLease ends a lease when its time is over.
func (s *Store) watchLease(id int64) {
	for {
		s.mu.Lock()
		l := s.leases[id]
		if l != nil && !time.Now().Before(l.ends) {
			s.revokeLocked(id)
			l = nil
		}
		s.mu.Unlock()
		if l == nil {
			return
		}
		select {
		case <-time.After(time.Until(l.ends)):
		case <-s.closed:
			return
		}
	}
}
