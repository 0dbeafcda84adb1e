package replicated

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// seedFirst is the sequence of the first message of a log whose shard had contents
// before: a store that is empty has nothing, and one with the contents has the log up
// to the message before, which never was.
const seedFirst = 2

// Seed is the beginning of a shard that has contents before its log has a message,
// because they were brought in from elsewhere. Stores with the contents have the mark
// of the seed; whoever has none of them begins with a checkpoint, since the log begins
// behind what an empty store has. Nobody else can write the first message.
type Seed struct {
	Log string `json:"log"` // identity that the log will have
}

// NewSeed makes the seed of one shard.
func NewSeed() Seed {
	var id identity
	_, _ = rand.Read(id[:]) // never fails
	return Seed{Log: id.String()}
}

// Mark is what stores with the contents have to say of how far they are.
func (s Seed) Mark() ([]byte, error) {
	id, err := parseIdentity(s.Log)
	if err != nil {
		return nil, err
	}
	return mark{log: id, position: seedFirst - 1}.encode(), nil
}

// SeedKeys returns the keys and values in etcd from which the members learn of a seed.
// They must be there before any of them opens the shard. all are the members in the
// order of the configuration, of which so many are to have a copy (0 means all), and
// holder is the one that has the contents: it keeps them until enough others do.
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
	if want := shard.wanted(); want < len(all) {
		places := shard.ring()[:want]
		if !slices.Contains(places, holder) {
			places = append(places, holder)
		}
		if text, err = json.Marshal(placesValue{places}); err != nil {
			return nil, err
		}
		values[keys.places] = string(text)
	}
	return values, nil
}

// beginning returns the identity and the first sequence of a log that has to be made.
func beginning(ctx context.Context, etcd *clientv3.Client, key string) (id identity, first uint64, err error) {
	found, err := etcd.Get(ctx, key)
	if err != nil {
		return id, 0, fmt.Errorf("looking for the seed of the log: %w", err)
	}
	if len(found.Kvs) == 0 {
		_, _ = rand.Read(id[:]) // never fails
		return id, 1, nil
	}
	var s Seed
	if err = json.Unmarshal(found.Kvs[0].Value, &s); err == nil {
		id, err = parseIdentity(s.Log)
	}
	if err != nil {
		return id, 0, fmt.Errorf("seed of the log in etcd: %w", err)
	}
	return id, seedFirst, nil
}
