package members_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	natsd "github.com/nats-io/nats-server/v2/server"
	"go.etcd.io/etcd/server/v3/embed"
	"sigs.k8s.io/yaml"

	"freshet/internal/ensemble/natsserver"
	"freshet/test/ensemble/chaos"
	"freshet/test/freeport"
	"freshet/test/stamp"
	"freshet/test/tally"
)

// externalEtcd runs an etcd outside of the ensemble, as an operator would.
func externalEtcd(t *testing.T) string {
	t.Helper()
	config := embed.NewConfig()
	config.Dir, config.LogLevel, config.UnsafeNoFsync = t.TempDir(), "fatal", true
	client, peer := url.URL{Scheme: "http", Host: freeAddress(t)}, url.URL{Scheme: "http", Host: freeAddress(t)}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(etcd.Close)
	<-etcd.Server.ReadyNotify()
	return client.String()
}

func freeAddress(t *testing.T) string {
	t.Helper()
	addresses, err := freeport.Addresses(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return addresses[0]
}

// externalNATS runs three NATS servers outside of the ensemble, as an operator would. The last
// one does not sync every write.
func externalNATS(t *testing.T) (servers []*natsd.Server, clients, monitoring []string) {
	t.Helper()
	var routes []*url.URL
	var addresses []string
	for range 3 {
		addresses = append(addresses, freeAddress(t))
		routes = append(routes, &url.URL{Scheme: "nats", Host: addresses[len(addresses)-1]})
	}
	for i := range 3 {
		host, port, err := net.SplitHostPort(addresses[i])
		if err != nil {
			t.Fatal(err)
		}
		o := &natsd.Options{
			ServerName: fmt.Sprint("n", i), Host: "127.0.0.1", Port: natsd.RANDOM_PORT, HTTPHost: "127.0.0.1",
			HTTPPort: natsd.RANDOM_PORT,
			NoSigs:   true, NoLog: true, JetStream: true, StoreDir: t.TempDir(), SyncAlways: i < 2,
			MaxPayload:        natsserver.MinMaxPayload,
			JetStreamMaxStore: 4 << 30, Routes: routes,
			Cluster: natsd.ClusterOpts{Name: "own", Host: host},
		}
		if _, err := fmt.Sscan(port, &o.Cluster.Port); err != nil {
			t.Fatal(err)
		}
		server, err := natsd.NewServer(o)
		if err != nil {
			t.Fatal(err)
		}
		server.Start()
		t.Cleanup(func() { server.Shutdown(); server.WaitForShutdown() })
		if !server.ReadyForConnections(10 * time.Second) {
			t.Fatal("NATS server is not ready")
		}
		servers, clients, monitoring = append(servers, server), append(clients, server.ClientURL()),
			append(monitoring, "http://"+server.MonitorAddr().String())
	}
	return servers, clients, monitoring
}

// TestFaultExternal runs an ensemble with an external etcd and external NATS servers.
// Messages are delivered, a condition reports that one NATS server does not sync, and the
// ensemble survives the loss of one NATS server.
func TestFaultExternal(t *testing.T) {
	servers, clients, monitoring := externalNATS(t)
	etcd := externalEtcd(t)
	dir := t.TempDir()
	made, err := chaos.NewEnsemble(t.Context(), chaos.EnsembleOptions{Binary: binary, Dir: dir}, 1)
	if err != nil {
		t.Fatal(err)
	}
	g := &ensemble{made, dir}
	t.Cleanup(func() {
		if t.Failed() {
			for _, m := range g.Members {
				t.Logf("member %s:\n%s", m.Name, m.Log())
			}
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, m := range g.Members {
		useExternal(t, filepath.Join(dir, m.Name+".yaml"), etcd, clients, monitoring)
	}
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	a, c := g.Members[0], g.Members[2]
	run(t, a, "topic", "create", "orders")
	run(t, a, "subscription", "create", "orders", "s")
	one, two := string(stamp.Make("orders", "a", 1, 0)), string(stamp.Make("orders", "c", 2, 0))
	run(t, a, "produce", "orders", one)

	// A condition and the log report that writes are not synced.
	await(t, "the condition", 30*time.Second, func() bool {
		return bytes.Contains(must(t, c, http.MethodGet, "/apis/cloud.vendor.io/v1alpha1/messagingclusters", ""),
			[]byte("SyncNotAlways"))
	})
	if log := a.Log(); !strings.Contains(log, "does not sync every write") {
		t.Error("log: got no line about missing syncs, want one")
	}
	out, _ := exec.CommandContext(t.Context(), binary, "doctor", "--config",
		filepath.Join(dir, "a.yaml")).CombinedOutput()
	for _, want := range []string{
		`(?m)^ok    nats .*version 2\.\d+`, `(?m)^warn  nats .*does not sync every write`,
		`(?m)^ok    etcd `,
	} {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("doctor: got no line %s in\n%s", want, out)
		}
	}

	began := time.Now()
	servers[0].Shutdown()
	servers[0].WaitForShutdown()
	await(t, "messages with one NATS server less", time.Minute, func() bool {
		return tryCommand(t, c, "produce", "orders", two) == nil
	})
	took := time.Since(began)
	got := run(t, c, "consume", "orders", "-s", "s", "--count", "2")
	for _, want := range []string{one, two} {
		if !strings.Contains(got, want) {
			t.Errorf("got messages %q, want %q among them", got, want)
		}
	}
	tally.Fault{Name: "external NATS server stopped", Injected: 1, Checked: 2, Recovery: took}.Record(t)
}

// useExternal changes a member's configuration to an external etcd and external NATS servers.
func useExternal(t *testing.T, file, etcd string, clients, monitoring []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	members, _ := config["members"].(map[string]any)
	list, _ := members["list"].([]any)
	for _, each := range list {
		member, _ := each.(map[string]any)
		delete(member, "etcd")
		delete(member, "log")
	}
	config["etcd"] = map[string]any{"endpoints": []string{etcd}}
	config["nats"] = map[string]any{"urls": clients, "monitoring": monitoring}
	if text, err = json.Marshal(config); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// tryCommand runs a freshet command against a member.
func tryCommand(t *testing.T, m *chaos.Member, args ...string) error {
	t.Helper()
	_, err := command(t, m, args...)
	return err
}

// run is try for commands that must succeed.
func run(t *testing.T, m *chaos.Member, args ...string) string {
	t.Helper()
	out, err := command(t, m, args...)
	if err != nil {
		t.Fatalf("freshet %s at %s: %v\n%s", strings.Join(args, " "), m.Name, err, out)
	}
	return out
}

func command(t *testing.T, m *chaos.Member, args ...string) (string, error) {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(m.Token()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = append(os.Environ(), "HOME="+filepath.Dir(token), "FRESHET_SERVER="+m.URL, "FRESHET_TOKEN_FILE="+token)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
