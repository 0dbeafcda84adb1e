// Package startup measures the real binary: the time from exec to ready on an empty and
// on a filled data directory, the time to stop, and the memory of an idle server.
package startup

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"freshet/test/testserver"
)

const (
	objects = 10_000          // in the filled directory; BENCH_OBJECTS overrides
	idle    = 5 * time.Second // wait before memory is read
	callers = 32
)

// BenchmarkEmpty measures a first start, which creates keys, certificates and the default cluster.
func BenchmarkEmpty(b *testing.B) {
	binary := build(b)
	var starts, stops, memory time.Duration
	for b.Loop() {
		server, took := start(b, binary, testserver.Options{})
		starts += took
		memory += time.Duration(resident(b, server))
		stops += stop(b, server)
	}
	report(b, starts, stops, memory)
}

// BenchmarkAgain measures a start on the data directory of an earlier start.
func BenchmarkAgain(b *testing.B) {
	binary := build(b)
	server, _ := start(b, binary, testserver.Options{})
	stop(b, server)
	restart(b, binary, server.DataDir)
}

// BenchmarkFilled measures a start on a data directory with many resources.
func BenchmarkFilled(b *testing.B) {
	binary := build(b)
	server, _ := start(b, binary, testserver.Options{})
	fill(b, server)
	stop(b, server)
	restart(b, binary, server.DataDir)
}

func restart(b *testing.B, binary, data string) {
	b.Helper()
	var starts, stops, memory time.Duration
	for b.Loop() {
		server, took := start(b, binary, testserver.Options{DataDir: data})
		starts += took
		memory += time.Duration(resident(b, server))
		stops += stop(b, server)
	}
	report(b, starts, stops, memory)
}

// report reports averages. It hides ns/op, which would include the idle wait.
func report(b *testing.B, starts, stops, memory time.Duration) {
	b.Helper()
	n := float64(b.N)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(starts.Milliseconds())/n, "ms-to-ready")
	b.ReportMetric(float64(stops.Milliseconds())/n, "ms-to-stop")
	b.ReportMetric(float64(memory)/n/(1<<20), "MB-idle")
}

func build(b *testing.B) string {
	b.Helper()
	binary, err := testserver.Binary(b.Context(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	return binary
}

func start(b *testing.B, binary string, opts testserver.Options) (*testserver.Server, time.Duration) {
	b.Helper()
	dir := b.TempDir()
	began := time.Now()
	server, err := testserver.Start(b.Context(), binary, dir, opts)
	took := time.Since(began)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(server.Kill)
	return server, took
}

func stop(b *testing.B, server *testserver.Server) time.Duration {
	b.Helper()
	began := time.Now()
	if err := server.Stop(time.Minute); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

// resident returns the memory of an idle server in bytes. It waits first, so that the
// garbage of the start can be collected.
func resident(b *testing.B, server *testserver.Server) int64 {
	b.Helper()
	<-time.After(idle)
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(server.PID()), "status"))
	if err != nil {
		b.Skipf("this system has no /proc/PID/status: %v", err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kilobytes, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			return kilobytes << 10
		}
	}
	b.Fatal("no VmRSS line in /proc/PID/status")
	return 0
}

func fill(b *testing.B, server *testserver.Server) {
	b.Helper()
	count := objects
	if text := os.Getenv("BENCH_OBJECTS"); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}
	tasks, ctx := errgroup.WithContext(b.Context())
	tasks.SetLimit(callers)
	for i := range count {
		tasks.Go(func() error { return create(ctx, client, server, i) })
	}
	if err := tasks.Wait(); err != nil {
		b.Fatal(err)
	}
}

func create(ctx context.Context, client *http.Client, server *testserver.Server, i int) error {
	body := fmt.Sprintf(`{"metadata":{"name":"u%d"},"spec":{"email":"u%d@example.com"}}`, i, i)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost,
		fmt.Sprintf("%s/apis/cloud.vendor.io/v1alpha1/namespaces/org%d/users", server.URL, i%10),
		strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+server.Token)
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	_ = res.Body.Close() // only the status is used
	if res.StatusCode != http.StatusCreated {
		return fmt.Errorf("create returned %s, want 201", res.Status)
	}
	return nil
}
