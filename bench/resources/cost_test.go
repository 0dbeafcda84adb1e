package resources

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"freshet/test/testserver"
)

// Environment variables that select the servers to compare Freshet with (docs/performance.md).
const (
	peerVariable      = "FRESHET_BENCH_PEER"       // address of a kube-apiserver, https://host:port
	peerTokenVariable = "FRESHET_BENCH_PEER_TOKEN" // file with a token that has all permissions there
	peerPIDVariable   = "FRESHET_BENCH_PEER_PID"   // process ids of it and its etcd, separated by commas
	beforeVariable    = "FRESHET_BENCH_BEFORE"     // another freshet binary
)

// amounts is the number of calls of each kind in a round.
type amounts struct{ rounds, objects, reads, writes, lists int }

var (
	full  = amounts{rounds: 3, objects: manyList, reads: 4000, writes: 1500, lists: 100}
	short = amounts{rounds: 1, objects: 20, reads: 40, writes: 40, lists: 4}
)

// BenchmarkCost prints the CPU time of servers per call: of Freshet and of the servers
// that it is compared with, alternately. CPU time is robust on a busy machine. With
// -short it only checks that every call works.
func BenchmarkCost(b *testing.B) {
	n := full
	if testing.Short() {
		n = short
	}
	servers := costServers(b)
	measured := make([]map[string][]float64, len(servers))
	for i := range servers {
		measured[i] = map[string][]float64{}
	}
	for range b.N {
		for range n.rounds {
			for i, s := range servers {
				s.round(b, n, measured[i])
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, row := range costRows {
		for i, s := range servers {
			b.ReportMetric(median(measured[i][row]), strings.ReplaceAll(s.name+"-"+row, " ", "-")+"-ms")
		}
	}
	fmt.Printf("\n%s\n", costTable(servers, measured))
}

// costServers starts Freshet and connects to the servers that the environment names.
func costServers(b *testing.B) []*costServer {
	b.Helper()
	servers := []*costServer{freshetServer("freshet", server(b))}
	if binary := os.Getenv(beforeVariable); binary != "" {
		other, err := testserver.Start(b.Context(), binary, b.TempDir(), testserver.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			if err := other.Stop(time.Minute); err != nil {
				b.Error(err)
			}
		})
		servers = append(servers, freshetServer("before", other))
	}
	if url := os.Getenv(peerVariable); url != "" {
		token, err := os.ReadFile(os.Getenv(peerTokenVariable))
		if err != nil {
			b.Fatalf("%s: %v", peerTokenVariable, err)
		}
		peer := &costServer{
			name: "ConfigMap", url: url, token: strings.TrimSpace(string(token)),
			pids:       strings.Split(os.Getenv(peerPIDVariable), ","),
			apiVersion: "v1", kind: "ConfigMap", path: "/api/v1", plural: "configmaps", body: "data",
		}
		if _, err := peer.cpuTime(); err != nil {
			b.Fatalf("%s: %v", peerPIDVariable, err)
		}
		servers = append(servers, peer)
	}
	for _, s := range servers {
		b.Cleanup(s.close)
		if err := s.connect(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	return servers
}

func freshetServer(name string, s *testserver.Server) *costServer {
	return &costServer{
		name: name, url: s.HTTPS, token: s.Token, pids: []string{fmt.Sprint(s.PID())},
		apiVersion: "cloud.vendor.io/v1alpha1", kind: "User", path: "/apis/cloud.vendor.io/v1alpha1",
		plural: "users", body: "spec",
	}
}

// costTable compares all servers with the first: a ratio below 1 means that the first costs less.
func costTable(servers []*costServer, measured []map[string][]float64) string {
	var out strings.Builder
	out.WriteString("CPU time of the server per call in ms, the median of the rounds and all of them:\n\n| |")
	for i, s := range servers {
		out.WriteString(" " + s.name + " |")
		if i > 0 {
			out.WriteString(" ratio |")
		}
	}
	out.WriteString("\n|---|" + strings.Repeat("---|", 2*len(servers)-1) + "\n")
	for _, row := range costRows {
		out.WriteString("| " + row + " |")
		for i := range servers {
			ms := median(measured[i][row])
			fmt.Fprintf(&out, " %.3g %.3g |", ms, measured[i][row])
			if i > 0 {
				fmt.Fprintf(&out, " %.2f |", median(measured[0][row])/ms)
			}
		}
		out.WriteByte('\n')
	}
	return out.String()
}

func TestCostTableComparesWithTheFirst(t *testing.T) {
	t.Parallel()
	measured := []map[string][]float64{{}, {}}
	for _, row := range costRows {
		measured[0][row], measured[1][row] = []float64{3, 1, 2}, []float64{4, 4, 5}
	}
	table := costTable([]*costServer{{name: "freshet"}, {name: "ConfigMap"}}, measured)
	if want := "| get | 2 [3 1 2] | 4 [4 4 5] | 0.50 |\n"; !strings.Contains(table, want) {
		t.Errorf("got table\n%s\nwant a line %q", table, want)
	}
	if !math.IsNaN(median(nil)) {
		t.Errorf("median of no values is %v, want NaN", median(nil))
	}
}

// TestCostCallsWork makes every measured call a few times.
func TestCostCallsWork(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a server")
	}
	dir := t.TempDir()
	binary, err := testserver.Binary(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	running, err := testserver.Start(t.Context(), binary, dir, testserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(running.Kill)
	s := freshetServer("freshet", running)
	t.Cleanup(s.close)
	if err := s.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	measured := map[string][]float64{}
	s.round(t, short, measured)
	for _, row := range costRows {
		if len(measured[row]) != 1 || measured[row][0] < 0 {
			t.Errorf("%s: got measurements %v, want one", row, measured[row])
		}
	}
}
