package check

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"freshet/internal/config"
	"freshet/internal/controlplane/etcd"
	"freshet/internal/ensemble/bundle"
	"freshet/internal/ensemble/integrity"
	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/internal/identity"
	"freshet/internal/ops/datadir"
	"freshet/internal/server/rejoin"
	"freshet/internal/storage/pebble"
	"freshet/test/ensemble/spoil"
	"freshet/test/poll"
)

// TestMain lets natstest run servers in processes of their own.
func TestMain(m *testing.M) {
	if natstest.Served() {
		return
	}
	os.Exit(m.Run())
}

// expected is what a check reports of a damaged class of files.
type expected struct {
	part   string // the name of the part begins with it
	remedy string // the remedy contains it
	// unseen are the operations after which the file is as it can be without damage.
	unseen []spoil.Operation
}

// expectations returns what a check reports of each class of files that a member has.
func expectations() map[string]expected {
	const logs, clusters = "log/jetstream/", "clusters/u/"
	gone, flipped := []spoil.Operation{spoil.Delete}, []spoil.Operation{spoil.Delete, spoil.Flip}
	all := map[string]expected{
		"etcd-log": {"etcd", rejoin.Advice, nil}, "etcd-db": {"etcd", rejoin.Advice, nil},
		"etcd-snapshot": {"etcd", rejoin.Advice, nil},
		"closed":        {"", closedRemedy, gone},
		"checkpoint":    {clusters, checkpointRemedy, nil},
		"journal-copy":  {clusters + "journal-copies/", copyRemedy, gone},
		"parts":         {"integrity", registerRemedy, gone},
		"format":        {datadir.FormatFile, removeFile, gone},
		"bundle":        {"members", "freshet ensemble join BUNDLE", nil},
		"admin-account": {"admin.json", "writes the file again", flipped},
		"sealed-keys":   {"encryption.sealed", "writes the file again", flipped},
		// Half of a token, or one with another letter, is a token. The running members compare theirs.
		"admin-token": {"admin.token", automatically, []spoil.Operation{spoil.Flip, spoil.CutHalf}},
	}
	for _, class := range []string{
		"log-block", "journal-block", "stream-meta", "stream-sum", "consumer-state", "raft-log", "raft-snapshot",
		"raft-vote", "raft-peers", "raft-meta", "meta-log", "meta-snapshot", "meta-vote", "meta-peers", "meta-meta",
	} {
		all[class] = expected{logs, logsRemedy, nil}
	}
	for _, class := range []string{"stream-index", "raft-index", "meta-index"} {
		all[class] = expected{logs, indexRemedy, nil}
	}
	for _, class := range []string{"table", "manifest", "marker", "options", "shard-log"} {
		all[class] = expected{clusters + "shard-000", automatically, nil}
	}
	for class, file := range map[string]string{"encryption-key": "encryption.key", "tls": "tls/"} {
		all[class] = expected{file, automatically, nil}
	}
	return all
}

// damagedParts implements Report.
type damagedParts struct{ found [][3]string }

func (*damagedParts) Part(string, string)           {}
func (*damagedParts) Progress(string, int64, int64) {}

func (d *damagedParts) Damaged(name, problem, remedy string) {
	d.found = append(d.found, [3]string{name, problem, remedy})
}

func checkMember(t *testing.T, cfg *config.Config) [][3]string {
	t.Helper()
	var d damagedParts
	if err := Directory(t.Context(), cfg, &d); err != nil {
		t.Fatal(err)
	}
	return d.found
}

// TestMember damages every class of files of a stopped member in every way. The check names the part and
// how the ensemble replaces it, and never advises a backup.
func TestMember(t *testing.T) {
	t.Parallel()
	cfg := newMember(t)
	if found := checkMember(t, cfg); len(found) > 0 {
		t.Fatalf("intact member: got %v, want no damage", found)
	}
	want := expectations()
	var absent []string
	for _, class := range spoil.Classes() {
		files := class.Find(cfg.DataDir)
		if len(files) == 0 {
			absent = append(absent, class.Name)
			continue
		}
		intact := map[string][]byte{}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			intact[file] = data
		}
		for i, operation := range spoil.Operations() {
			done, err := spoil.Damage(cfg.DataDir, class, operation, rand.New(rand.NewPCG(7, uint64(i))), nil)
			if err != nil {
				continue // the files are empty
			}
			found := checkMember(t, cfg)
			e := want[class.Name]
			named := slices.ContainsFunc(found, func(d [3]string) bool {
				return strings.HasPrefix(d[0], e.part) && strings.Contains(d[2], e.remedy)
			})
			if !named && !slices.Contains(e.unseen, operation) {
				t.Errorf("%s, %s: got %q, want part %q with remedy %q", class.Name, done, found, e.part, e.remedy)
			}
			for _, d := range found {
				if strings.Contains(d[1]+d[2], "backup") || strings.Contains(d[1], "goroutine") {
					t.Errorf("%s, %s: got %q, want no backup and no stack", class.Name, done, d)
				}
			}
			for file, data := range intact {
				if err := os.WriteFile(file, data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if want := []string{"consumer-state", "etcd-snapshot"}; !slices.Equal(absent, want) { // need much more data
		t.Errorf("classes without files: got %v, want %v", absent, want)
	}
	if found := checkMember(t, cfg); len(found) > 0 {
		t.Errorf("member whose files are restored: got %v, want no damage", found)
	}
	register, err := integrity.Open(cfg.Path("integrity"), integrity.Options{})
	if err != nil {
		t.Fatal(err)
	}
	register.Damaged(rejoin.Part, "etcd/member/snap/db", os.ErrInvalid)
	found := checkMember(t, cfg)
	if len(found) != 1 || found[0][2] != rejoin.Advice {
		t.Errorf("etcd that the running member has found damaged: got %q, want the command to rejoin", found)
	}
}

// newMember creates the data directory of a member that was stopped in order, from the parts that its
// servers and stores write.
func newMember(t *testing.T) *config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.DataDir = t.TempDir()
	var list []bundle.Member
	for _, name := range []string{"a", "b", "c"} {
		list = append(list, bundle.Member{Name: name, Internal: "127.0.0.1:1", Etcd: "127.0.0.1:2", Log: "127.0.0.1:3"})
	}
	ensemble, err := bundle.New("https://freshet.example.com", list, identity.NewKeyFile())
	must(t, err)
	own, err := ensemble.Bundle("a", false)
	must(t, err)
	must(t, own.Install(bundle.Paths{
		DataDir: cfg.DataDir, CertDir: cfg.BundleDir(), EncryptionKeys: cfg.EncryptionKeyFile(),
	}))
	must(t, datadir.OpenFormats(cfg.DataDir, slog.New(slog.DiscardHandler)))
	for name, text := range map[string]string{"admin.json": `{"type":"x"}`, "encryption.sealed": `{"active":"x"}`} {
		must(t, os.WriteFile(cfg.Path(name), []byte(text), 0o600))
	}
	register, err := integrity.Open(cfg.Path("integrity"), integrity.Options{})
	must(t, err)
	register.Verified("logs")
	writeEtcd(t, cfg.Path("etcd"))
	writeShard(t, cfg.Path("clusters", "u", "shard-000"))
	writeCopy(t, cfg.Path("clusters", "u", "journal-copies", "catalogue.copy"))
	writeLogs(t, cfg.Path("log"))
	return cfg
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func writeEtcd(t *testing.T, dir string) {
	t.Helper()
	m, err := etcd.Start(t.Context(), dir, etcd.Options{Unsafe: true})
	must(t, err)
	client := m.Client()
	_, err = client.Put(t.Context(), "key", strings.Repeat("value", 1000))
	must(t, err)
	_ = client.Close() // returns that its context has ended
	must(t, m.Close())
}

// writeShard writes a store with a table, and a checkpoint next to it.
func writeShard(t *testing.T, dir string) {
	t.Helper()
	after := uint64(0)
	for range 2 { // the second time, the records are in a table
		e, err := pebble.Open(dir, pebble.Options{})
		must(t, err)
		j, err := e.Journal(t.Context(), "journal")
		must(t, err)
		after, err = j.Append(t.Context(), after, make([]byte, 10_000))
		must(t, err)
		must(t, e.Close())
	}
	must(t, os.CopyFS(dir+"-checkpoints/one", os.DirFS(dir)))
}

// writeCopy writes the copy of a journal without records.
func writeCopy(t *testing.T, path string) {
	t.Helper()
	header := `h{"cluster":"u","journal":"catalogue","position":0,"sum":"0000000000000001` +
		strings.Repeat("0", 32) + `"}`
	data := binary.BigEndian.AppendUint32([]byte("FRESHETJ1\n"), uint32(len(header)))
	data = binary.BigEndian.AppendUint32(data, crc32.Checksum([]byte(header), crc32.MakeTable(crc32.Castagnoli)))
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, append(data, header...), 0o600))
}

// writeLogs writes the files of one of three NATS servers with the log of a shard and a journal.
func writeLogs(t *testing.T, dir string) {
	t.Helper()
	c := natstest.New(t, 3, natstest.Unsafe)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	js, err := jetstream.New(c.Connect(0))
	must(t, err)
	for _, name := range []string{"S_u_0", "J_u_catalogue"} {
		c.CreateStream(ctx, js, jetstream.StreamConfig{Name: name, Subjects: []string{name}, Replicas: 3})
		for range 10 {
			_, err := js.Publish(ctx, name, make([]byte, 1000), jetstream.WithRetryAttempts(1000),
				jetstream.WithRetryWait(100*time.Millisecond))
			must(t, err)
		}
	}
	poll.Until(t, 5*time.Minute, "server 2 has all messages", func() bool { return c.Server(2).Current() == nil })
	c.Stop(2)
	must(t, os.CopyFS(dir, os.DirFS(c.Dir(2))))
	must(t, os.CopyFS(dir+"-state", os.DirFS(c.State(2))))
}
