package replicated

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// seedFirst is the first sequence of the log of a seeded shard. The message before it never
// existed: a store with the seeded content has the log up to that message, and an empty
// store does not.
const seedFirst = 2

// Seed describes a shard whose content is copied from another server before its log has a
// message. Stores with the content have the position of the seed. A member without the content
// starts with a checkpoint, because the log begins after the position of an empty store. So
// only a member with the content can write the first message.
type Seed struct {
	Log string `json:"log"` // identity of the future log
}

// NewSeed creates the seed of one shard.
func NewSeed() Seed {
	var id logID
	_, _ = rand.Read(id[:]) // never fails
	return Seed{Log: id.String()}
}

// StorePosition returns the encoded position that stores with the content must have.
func (s Seed) StorePosition() ([]byte, error) {
	id, err := parseLogID(s.Log)
	if err != nil {
		return nil, err
	}
	return logPosition{log: id, seq: seedFirst - 1}.encode(), nil
}

// SeedKeys returns the keys and values in etcd that announce a seed to the members. They
// must exist before a member opens the shard. all are the members in the order of the
// configuration, copies is how many of them should have a copy (0 means all), and holder is
// the member with the content, which keeps it until enough others have it.
func SeedKeys(prefix, cluster string, number int, s Seed, all []string, copies int,
	holder string,
) (map[string]string, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	shard := &Shard{o: Options{Prefix: prefix, Cluster: cluster, Number: number, All: all}}
	shard.SetCopies(copies)
	keys := shard.o.keys()
	values := map[string]string{keys.seed: string(text)}
	if want := shard.wantedCopies(); want < len(all) {
		holders := shard.ring()[:want]
		if !slices.Contains(holders, holder) {
			holders = append(holders, holder)
		}
		if text, err = json.Marshal(holdersValue{holders}); err != nil {
			return nil, err
		}
		values[keys.holders] = string(text)
	}
	return values, nil
}

// logOrigin returns the identity and the first sequence of a log to create.
func logOrigin(ctx context.Context, etcd *clientv3.Client, key string) (id logID, first uint64, err error) {
	found, err := etcd.Get(ctx, key)
	if err != nil {
		return id, 0, fmt.Errorf("reading the seed of the log: %w", err)
	}
	if len(found.Kvs) == 0 {
		_, _ = rand.Read(id[:]) // never fails
		return id, 1, nil
	}
	var s Seed
	if err = json.Unmarshal(found.Kvs[0].Value, &s); err == nil {
		id, err = parseLogID(s.Log)
	}
	if err != nil {
		return id, 0, fmt.Errorf("decoding the seed of the log in etcd: %w", err)
	}
	return id, seedFirst, nil
}
