package replicated

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/test/tally"
)

// TestFaultRestarts kills, stops and starts members and servers of the log in any order, one, two
// and all at a time, with intact logs. Files with acknowledged positions are set back, cut, filled
// with noise and removed meanwhile. No member ever says that the log is lost, and every
// acknowledged message stays.
func TestFaultRestarts(t *testing.T) {
	t.Parallel()
	p := newTrio(t)
	seed := historySeed(t)
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	var claims atomic.Int64 // that the log is lost
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p.run(t, "a")
	watcher := p.g.etcd.Client()
	defer watcher.Close()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for response := range watcher.Watch(ctx, "/shards/"+p.cluster+"/0/copies/", clientv3.WithPrefix()) {
			for _, e := range response.Events {
				if strings.Contains(string(e.Kv.Value), `"lost":true`) {
					claims.Add(1)
					t.Errorf("got %s, want no lost log", e.Kv.Value)
				}
			}
		}
	}()
	p.run(t, "b")
	p.run(t, "c")
	texts := fill(t, awaitAnyOwner(t, p.all["a"], p.all["b"], p.all["c"]), 3)
	rounds := 6
	if tally.Long() {
		rounds = 60
	}
	injected := 0
	for round := range rounds {
		names := slices.Clone(trioNames)
		rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		names = names[:1+rng.IntN(3)]
		withServers := rng.IntN(2) == 0
		t.Logf("round %d: %v, servers %t", round, names, withServers)
		older := map[string][]byte{}
		for _, name := range trioNames { // as they are on the disk after a power cut
			older[name], _ = os.ReadFile(p.dir + "/" + name + MarkSuffix)
		}
		for range 1 + rng.IntN(20) {
			texts = append(texts, p.accepts(t))
		}
		for _, name := range names {
			p.end(t, name, rng.IntN(3) > 0)
			if withServers {
				p.server(name, false)
			}
			injected++
		}
		rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for _, name := range names {
			if withServers {
				p.server(name, true)
			}
		}
		p.g.nats.Ready()
		for _, name := range names {
			damageMark(t, rng, p.dir+"/"+name+MarkSuffix, older[name])
			p.run(t, name)
		}
		texts = append(texts, p.serves(t, texts))
	}
	for _, name := range trioNames {
		p.end(t, name, false)
	}
	cancel()
	<-watched
	tally.Fault{
		Name: "members and servers of the log restarted in any order", Injected: injected, Checked: len(texts),
		Wrong: int(claims.Load()),
	}.Record(t)
}

// damageMark does to a mark file what a power cut or a bad disk can.
func damageMark(t *testing.T, rng *rand.Rand, path string, older []byte) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		return // the member has not acknowledged anything yet
	}
	switch rng.IntN(6) {
	case 0:
		content = older
	case 1:
		content = content[:rng.IntN(len(content)+1)]
	case 2:
		for i := range content {
			content[i] = byte(rng.Uint32())
		}
	case 3:
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return
	default:
		return
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
