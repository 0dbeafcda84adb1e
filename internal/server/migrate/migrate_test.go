package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"freshet/api/v1alpha1"
	"freshet/internal/base/errs"
	"freshet/internal/config"
	"freshet/internal/controlplane/etcd"
	"freshet/internal/ensemble/bundle"
	"freshet/internal/ensemble/sharded"
	"freshet/internal/identity"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
)

const uid = "11111111-2222-3333-4444-555555555555"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stored returns the stored form of a resource.
func stored(t *testing.T, cluster *v1alpha1.MessagingCluster) string {
	t.Helper()
	raw, err := cluster.Marshal()
	must(t, err)
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{
		APIVersion: "cloud.vendor.io/v1alpha1",
		Kind:       "MessagingCluster",
	}, Raw: raw}
	data, err := unknown.Marshal()
	must(t, err)
	return "k8s\x00" + string(data)
}

// server creates the data directory of a single server whose cluster is configured for four
// shards.
func server(t *testing.T) string {
	t.Helper()
	dir, ctx := t.TempDir(), t.Context()
	must(t, os.WriteFile(filepath.Join(dir, "admin.token"), []byte("token"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "encryption.key"), identity.NewKeyFile(), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "audit.log"), []byte("{}\n"), 0o600))
	member, err := etcd.Start(ctx, filepath.Join(dir, "etcd"), etcd.Options{Unsafe: true})
	must(t, err)
	client := member.Client()
	cluster := &v1alpha1.MessagingCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "main", UID: uid},
		Spec: v1alpha1.MessagingClusterSpec{Config: &v1alpha1.ClusterConfig{
			Custom: map[string]string{"shards": "4"},
		}},
	}
	for key, value := range map[string]string{
		"/freshet/resources/cloud.vendor.io/messagingclusters/acme/main": stored(t, cluster),
		"/freshet/shards/" + uid + "/0/log":                              "of an earlier ensemble",
		"/freshet/other":                                                 "value",
	} {
		_, err := client.Put(ctx, key, value)
		must(t, err)
	}
	_ = client.Close() // returns the error of its canceled context
	must(t, member.Close())
	e, err := pebble.Open(filepath.Join(dir, "clusters", uid), pebble.Options{})
	must(t, err)
	for id := engine.TopicID(1); id <= 6; id++ {
		must(t, e.CreateTopic(ctx, id, engine.TopicConfig{Partitions: 1, RetainAge: -1, RetainBytes: -1}))
		must(t, e.CreateSubscription(ctx, id, "sub", engine.SubscriptionConfig{},
			engine.Position{Kind: engine.Earliest}))
		for i := range 20 {
			_, err := e.Append(ctx, id, 0, []engine.Message{{Payload: fmt.Appendf(nil, "%d/%d", id, i)}})
			must(t, err)
		}
	}
	for _, name := range []string{"messaging", "groups-00", "groups-07"} {
		j, err := e.Journal(ctx, name)
		must(t, err)
		_, err = j.Append(ctx, 0, []byte("one"), []byte("two"))
		must(t, err)
		must(t, j.SaveSnapshot(ctx, 1, func(w io.Writer) error { _, err := io.WriteString(w, "state"); return err }))
	}
	must(t, e.Close())
	return dir
}

// member creates the configuration and data directory of an ensemble's first member, with
// the secrets of a server.
func member(t *testing.T, from string) *config.Config {
	t.Helper()
	keys, err := os.ReadFile(filepath.Join(from, "encryption.key"))
	must(t, err)
	var list []bundle.Member
	for i, name := range []string{"a", "b", "c"} {
		list = append(list, bundle.Member{
			Name: name, Internal: fmt.Sprintf("127.0.0.1:%d", 10+i),
			Etcd: fmt.Sprintf("127.0.0.1:%d", 20+i), Log: fmt.Sprintf("127.0.0.1:%d", 30+i),
		})
	}
	g, err := bundle.New("http://127.0.0.1:1", list, keys)
	must(t, err)
	g.Seed, g.Secrets.AdminToken = "a", "token"
	part, err := g.Bundle("a", false)
	must(t, err)
	cfg := config.Default()
	cfg.DataDir, cfg.Members.Self = filepath.Join(t.TempDir(), "a"), "a"
	for _, m := range list {
		cfg.Members.List = append(cfg.Members.List, config.Member(m))
	}
	must(t, part.Install(bundle.Paths{
		DataDir: cfg.DataDir, CertDir: cfg.BundleDir(),
		EncryptionKeys: cfg.EncryptionKeyFile(),
	}))
	return cfg
}

// hooks implements Report with functions.
type hooks struct {
	step     func(text string)
	progress func(done, total int64)
}

func (h hooks) Step(text string) {
	if h.step != nil {
		h.step(text)
	}
}

func (h hooks) Progress(done, total int64) {
	if h.progress != nil {
		h.progress(done, total)
	}
}

func ignore(int64, int64) {}

// entries returns the names in a directory.
func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	must(t, err)
	names := make([]string, 0, len(list))
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// TestRun interrupts a migration at every step, continues it, and then unites the shards
// again: the result must equal the source.
func TestRun(t *testing.T) {
	t.Parallel()
	from := server(t)
	cfg := member(t, from)
	var result *Result
	for end := 1; result == nil; end++ {
		ctx, cancel := context.WithCancel(t.Context())
		steps := 0
		got, err := Run(ctx, Options{From: from, Config: cfg, Report: hooks{step: func(string) {
			if steps++; steps == end {
				cancel()
			}
		}}})
		cancel()
		switch {
		case err == nil:
			result = got
		case !errors.Is(err, context.Canceled):
			t.Fatal(err)
		case slices.Contains(entries(t, cfg.DataDir), "clusters"):
			t.Fatal("clusters are in the data directory before everything was compared")
		}
	}
	if result.Member != "a" || len(result.Clusters) != 1 || result.Clusters[0].Name != "acme/main" ||
		len(result.Clusters[0].Seeds) != 4 {
		t.Errorf("got %+v, want acme/main in 4 shards", result)
	}
	var messages uint64
	var subscriptions int
	for _, s := range result.Clusters[0].Stores {
		messages, subscriptions = messages+s.Messages, subscriptions+s.Subscriptions
	}
	if messages != 120 || subscriptions != 6 {
		t.Errorf("got %d messages and %d subscriptions, want 120 and 6", messages, subscriptions)
	}
	for _, name := range []string{"etcd", "clusters", "audit.log", ResultFile} {
		if !exists(cfg.DataDir, name) {
			t.Errorf("%s is missing", name)
		}
	}
	if exists(cfg.DataDir, Folder) {
		t.Errorf("%s still exists", Folder)
	}
	again, err := Run(t.Context(), Options{From: from, Config: cfg, Report: hooks{}})
	if err != nil || !again.Again || again.Etcd != result.Etcd {
		t.Errorf("second run: got %+v, %v, want the earlier result", again, err)
	}
	// Two keys of the server, count, journals and four seeds; none of the earlier ensemble.
	if result.Etcd.Keys != 8 {
		t.Errorf("got %d keys, want 8", result.Etcd.Keys)
	}

	folder := filepath.Join(cfg.DataDir, "clusters", uid)
	before, err := pebble.TakeSurvey(t.Context(), filepath.Join(from, "clusters", uid), ignore)
	must(t, err)
	var steps []string
	whole := ""
	report := hooks{step: func(text string) { steps = append(steps, text) }, progress: func(done, total int64) {
		if done == total {
			whole = steps[len(steps)-1]
		}
	}}
	must(t, Merge(t.Context(), folder, report))
	if len(steps) != 2 || steps[0] != "merging 4 shards into one store" || steps[1] != "comparing" || whole == "" {
		t.Errorf("got steps %q, and progress up to the end of %q, want two and progress", steps, whole)
	}
	must(t, Merge(t.Context(), folder, hooks{})) // it is one store already
	after, err := pebble.TakeSurvey(t.Context(), folder, ignore)
	must(t, err)
	if !maps.Equal(before.Topics, after.Topics) || !maps.Equal(before.Journals, after.Journals) ||
		after.LogPosition != nil {
		t.Errorf("after Merge: got %+v, want %+v", after, before)
	}
}

// TestRunFindsDifferences checks that a copy that differs is not published.
func TestRunFindsDifferences(t *testing.T) {
	t.Parallel()
	from := server(t)
	for name, change := range map[string]func(t *testing.T, cfg *config.Config){
		"a message": func(t *testing.T, cfg *config.Config) {
			t.Helper()
			dir := filepath.Join(cfg.DataDir, Folder, "made", "clusters", uid, sharded.ShardDir(1))
			e, err := pebble.Open(dir, pebble.Options{})
			must(t, err)
			_, err = e.Append(t.Context(), 1, 0, []engine.Message{{Payload: []byte("more")}})
			must(t, errors.Join(err, e.Close()))
		},
		"a shard": func(t *testing.T, cfg *config.Config) {
			t.Helper()
			dir := filepath.Join(cfg.DataDir, Folder, "made", "clusters", uid, sharded.ShardDir(2))
			must(t, os.RemoveAll(dir))
			e, err := pebble.Open(dir, pebble.Options{})
			must(t, errors.Join(err, e.Close()))
		},
	} {
		cfg := member(t, from)
		_, err := Run(t.Context(), Options{From: from, Config: cfg, Report: hooks{step: func(text string) {
			if strings.Contains(text, "comparing") {
				change(t, cfg)
			}
		}}})
		if !errors.Is(err, errDifferent) {
			t.Errorf("%s: got %v, want %v", name, err, errDifferent)
		}
		if names := entries(t, cfg.DataDir); slices.Contains(names, "etcd") || slices.Contains(names, "clusters") {
			t.Errorf("%s: got %v, want no files that a server would use", name, names)
		}
	}
}

// TestRunStartsAgain checks that a run starts again if the source has changed since an
// interrupted run.
func TestRunStartsAgain(t *testing.T) {
	t.Parallel()
	from := server(t)
	cfg := member(t, from)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Run(ctx, Options{From: from, Config: cfg, Report: hooks{step: func(text string) {
		if strings.Contains(text, "comparing") {
			cancel()
		}
	}}})
	cancel()
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	e, err := pebble.Open(filepath.Join(from, "clusters", uid), pebble.Options{})
	must(t, err)
	_, err = e.Append(t.Context(), 1, 0, []engine.Message{{Payload: []byte("later")}})
	must(t, errors.Join(err, e.Close()))
	result, err := Run(t.Context(), Options{From: from, Config: cfg, Report: hooks{}})
	must(t, err)
	if got := result.Clusters[0].Stores[1].Messages; got != 41 { // topics 1 and 5
		t.Errorf("got %d messages in shard 1, want 41", got)
	}
}

// TestRunRejects checks the errors for sources and targets that cannot be used.
func TestRunRejects(t *testing.T) {
	t.Parallel()
	write := func(text string, elem ...string) error {
		path := filepath.Join(elem...)
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
	}
	for name, c := range map[string]struct {
		change func(from string, cfg *config.Config) error
		want   string
	}{
		"member of an ensemble": {
			func(from string, _ *config.Config) error { return write("{}", from, "members", "join.json") },
			"of a member of an ensemble",
		},
		"shards": {func(from string, _ *config.Config) error {
			return os.Mkdir(filepath.Join(from, "clusters", uid, sharded.ShardDir(0)), 0o700)
		}, "has shards"},
		"restored": {
			func(from string, _ *config.Config) error { return write("{}", from, "restored.json") },
			"start and stop the server once",
		},
		"no etcd": {
			func(from string, _ *config.Config) error { return os.RemoveAll(filepath.Join(from, "etcd")) },
			"no resource store",
		},
		"other prefix": {
			func(_ string, cfg *config.Config) error { cfg.Etcd.Prefix = "/other"; return nil },
			"another etcd.prefix",
		},
		"other token": {
			func(from string, _ *config.Config) error { return write("other", from, "admin.token") },
			"bundle is of another ensemble",
		},
		"external etcd": {
			func(_ string, cfg *config.Config) error { cfg.Etcd.Endpoints = []string{"https://etcd"}; return nil },
			"an external etcd",
		},
		"no members": {
			func(_ string, cfg *config.Config) error { cfg.Members = config.Default().Members; return nil },
			"has no members",
		},
		"not the seed": {func(_ string, cfg *config.Config) error {
			return write(`{"group":"g","existing":true}`, cfg.BundleDir(), "join.json")
		}, "freshet ensemble init --from"},
		"used target": {
			func(_ string, cfg *config.Config) error { return os.Mkdir(filepath.Join(cfg.DataDir, "log"), 0o700) },
			"is not empty",
		},
		"small disk": {func(from string, _ *config.Config) error {
			return errors.Join(write("", from, "clusters", "huge"),
				os.Truncate(filepath.Join(from, "clusters", "huge"), 1<<42))
		}, "free space"},
		"damaged store": {func(from string, _ *config.Config) error {
			files, err := filepath.Glob(filepath.Join(from, "clusters", uid, "MANIFEST-*"))
			return errors.Join(err, os.Remove(files[0]))
		}, "missing"},
	} {
		from := server(t)
		cfg := member(t, from)
		must(t, c.change(from, cfg))
		_, err := Run(t.Context(), Options{From: from, Config: cfg, Report: hooks{}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, c.want)
		}
		if names := entries(t, cfg.DataDir); slices.Contains(names, "etcd") || slices.Contains(names, "clusters") {
			t.Errorf("%s: got %v, want no files that a server would use", name, names)
		}
	}
}

// TestKeys checks that an ensemble without the keys of the secrets is rejected.
func TestKeys(t *testing.T) {
	t.Parallel()
	from := server(t)
	m := &migration{Options: Options{From: from, Config: member(t, from)}}
	if err := m.checkKeys(map[string]bool{"unknown": true}); errs.KindOf(err) != errs.Precondition {
		t.Errorf("unknown key: got %v, want an error of kind Precondition", err)
	}
	sealer, err := identity.ReadSealer(filepath.Join(from, "encryption.key"))
	must(t, err)
	if err := m.checkKeys(map[string]bool{sealer.KeyIDs()[0]: true}); err != nil {
		t.Errorf("key of the ensemble: got %v, want no error", err)
	}
}
