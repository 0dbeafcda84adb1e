package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Keys in etcd of a journal, under Options.Keys and its encoded name:
//
//	stream            which stream is the journal (streamValue)
//	members/<member>  what the member's copy contains (Position)
//	lost              why the journal does not answer, while it does not
//	rebuild           the member that rebuilds the journal, with that member's lease
//	accepted          the member from whose copy an operator lets the journal continue (acceptedValue)
type registry struct {
	etcd *clientv3.Client
	base string // ends with a slash
}

// etcdTimeout bounds one request to etcd.
const etcdTimeout = 5 * time.Second

func newRegistry(o *Options, name string) *registry {
	if o.Etcd == nil {
		return nil
	}
	return &registry{o.Etcd, strings.TrimSuffix(o.Keys, "/") + "/" + encodeToken(name) + "/"}
}

func (r *registry) streamKey() string          { return r.base + "stream" }
func (r *registry) lostKey() string            { return r.base + "lost" }
func (r *registry) rebuildKey() string         { return r.base + "rebuild" }
func (r *registry) acceptedKey() string        { return r.base + "accepted" }
func (r *registry) memberKey(of string) string { return r.base + "members/" + of }

// streamValue identifies the stream that is the journal.
type streamValue struct {
	Generation string `json:"generation,omitempty"` // part of the stream's name
	ID         string `json:"id"`                   // identity of the stream
	// Position and Sum are the end of the copy from which the stream was rebuilt.
	Position uint64 `json:"position,omitempty"`
	Sum      string `json:"sum,omitempty"`
}

// acceptedValue is the decision of an operator about a lost journal.
type acceptedValue struct {
	Stream   string `json:"stream"` // identity of the stream that is given up
	Member   string `json:"member"` // whose copy the journal continues from
	Position uint64 `json:"position"`
	Sum      string `json:"sum"`
}

// Position is what a member's copy of a journal contains.
type Position struct {
	Stream   string `json:"stream,omitempty"` // identity of the stream that it copies
	Position uint64 `json:"position"`
	Sum      string `json:"sum,omitempty"`
}

// journalKeys are the keys of a journal at one revision.
type journalKeys struct {
	stream     streamValue
	streamText string // "" when the journal was never opened with etcd
	published  map[string]Position
	lost       string
	accepted   *acceptedValue
}

// read reads all keys of the journal.
func (r *registry) read(ctx context.Context) (*journalKeys, error) {
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	found, err := r.etcd.Get(ctx, r.base, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("reading the journal's keys from etcd: %w", err)
	}
	keys := &journalKeys{published: map[string]Position{}}
	for _, kv := range found.Kvs {
		switch name := strings.TrimPrefix(string(kv.Key), r.base); name {
		case "stream":
			keys.streamText = string(kv.Value)
			err = json.Unmarshal(kv.Value, &keys.stream)
		case "lost":
			keys.lost = string(kv.Value)
		case "accepted":
			keys.accepted = new(acceptedValue)
			err = json.Unmarshal(kv.Value, keys.accepted)
		default:
			if member, ok := strings.CutPrefix(name, "members/"); ok {
				var p Position
				err = json.Unmarshal(kv.Value, &p)
				keys.published[member] = p
			}
		}
		if err != nil {
			return nil, fmt.Errorf("decoding key %s in etcd: %w", kv.Key, err)
		}
	}
	return keys, nil
}

// create stores which stream is the journal, unless another member has done so.
func (r *registry) create(ctx context.Context, v streamValue) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	_, err = r.etcd.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(r.streamKey()), "=", 0)).
		Then(clientv3.OpPut(r.streamKey(), string(text))).Commit()
	if err != nil {
		return fmt.Errorf("storing the identity of the journal's stream in etcd: %w", err)
	}
	return nil
}

func (r *registry) put(ctx context.Context, key string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	if _, err := r.etcd.Put(ctx, key, string(text)); err != nil {
		return fmt.Errorf("storing %s in etcd: %w", key, err)
	}
	return nil
}

// report stores why the journal does not answer, while it is the given stream.
func (r *registry) report(ctx context.Context, v streamValue, text string) error {
	stream, err := json.Marshal(v)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	_, err = r.etcd.Txn(ctx).If(clientv3.Compare(clientv3.Value(r.streamKey()), "=", string(stream))).
		Then(clientv3.OpPut(r.lostKey(), text)).Commit()
	return err
}

// clearLost removes the report, if the journal is still the given stream.
func (r *registry) clearLost(ctx context.Context, streamText string) error {
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	_, err := r.etcd.Txn(ctx).If(clientv3.Compare(clientv3.Value(r.streamKey()), "=", streamText)).
		Then(clientv3.OpDelete(r.lostKey())).Commit()
	return err
}

// rebuildLock is the exclusive right to replace the journal's stream.
type rebuildLock struct {
	r     *registry
	value string
}

// errRebuiltElsewhere means that another member rebuilds the journal.
type errRebuiltElsewhere struct{ member string }

func (e *errRebuiltElsewhere) Error() string {
	return fmt.Sprintf("member %q rebuilds the journal", e.member)
}

// lock acquires the right to rebuild the journal. It ends with this member's lease. A key of this member
// itself is from an attempt that has ended: a member runs one attempt at a time.
func (r *registry) lock(ctx context.Context, member, attempt string, lease clientv3.LeaseID) (*rebuildLock, error) {
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	value := member + " " + attempt
	put := clientv3.OpPut(r.rebuildKey(), value, clientv3.WithLease(lease))
	response, err := r.etcd.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(r.rebuildKey()), "=", 0)).
		Then(put).Else(clientv3.OpGet(r.rebuildKey())).Commit()
	if err != nil {
		return nil, err
	}
	if !response.Succeeded {
		held := response.Responses[0].GetResponseRange().Kvs[0]
		owner, _, _ := strings.Cut(string(held.Value), " ")
		if owner != member {
			return nil, &errRebuiltElsewhere{owner}
		}
		unchanged := clientv3.Compare(clientv3.ModRevision(r.rebuildKey()), "=", held.ModRevision)
		response, err = r.etcd.Txn(ctx).If(unchanged).Then(put).Commit()
		if err == nil && !response.Succeeded {
			err = errors.New("another attempt to rebuild the journal has begun")
		}
		if err != nil {
			return nil, err
		}
	}
	return &rebuildLock{r, value}, nil
}

// release gives the right up.
func (l *rebuildLock) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), etcdTimeout)
	defer cancel()
	// When this fails, the key ends with the lease, or this member's next attempt replaces it.
	_, _ = l.r.etcd.Txn(ctx).If(clientv3.Compare(clientv3.Value(l.r.rebuildKey()), "=", l.value)).
		Then(clientv3.OpDelete(l.r.rebuildKey())).Commit()
}

// errOvertaken means that another member replaced the stream, or took over the right to do so.
var errOvertaken = errors.New("another member has replaced the stream or taken over rebuilding it")

// replace makes another stream the journal, while this member has the right to rebuild it.
func (l *rebuildLock) replace(ctx context.Context, oldText string, v streamValue) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	response, err := l.r.etcd.Txn(ctx).If(
		clientv3.Compare(clientv3.Value(l.r.streamKey()), "=", oldText),
		clientv3.Compare(clientv3.Value(l.r.rebuildKey()), "=", l.value)).
		Then(clientv3.OpPut(l.r.streamKey(), string(text)), clientv3.OpDelete(l.r.lostKey()),
			clientv3.OpDelete(l.r.acceptedKey())).
		Commit()
	if err == nil && !response.Succeeded {
		err = errOvertaken
	}
	return err
}

// knownNames returns the journals that etcd knows, also those whose streams are lost.
func (o *Options) knownNames(ctx context.Context) ([]string, error) {
	if o.Etcd == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	base := strings.TrimSuffix(o.Keys, "/") + "/"
	found, err := o.Etcd.Get(ctx, base, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, fmt.Errorf("listing journals in etcd: %w", err)
	}
	var names []string
	for _, kv := range found.Kvs {
		if token, ok := strings.CutSuffix(strings.TrimPrefix(string(kv.Key), base), "/stream"); ok {
			names = append(names, decodeToken(token))
		}
	}
	return names, nil
}

// Lost returns why journals do not answer, by name. It is empty when all do.
func (o *Options) Lost(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	base := strings.TrimSuffix(o.Keys, "/") + "/"
	found, err := o.Etcd.Get(ctx, base, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("reading the state of journals from etcd: %w", err)
	}
	lost := map[string]string{}
	for _, kv := range found.Kvs {
		if token, ok := strings.CutSuffix(strings.TrimPrefix(string(kv.Key), base), "/lost"); ok {
			lost[decodeToken(token)] = string(kv.Value)
		}
	}
	return lost, nil
}
