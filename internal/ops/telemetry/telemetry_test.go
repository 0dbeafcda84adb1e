package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/logutil"
	"go.uber.org/zap"
	"k8s.io/klog/v2"

	"freshet/internal/base/version"
	"freshet/internal/base/web"
)

var _ web.Observer = (*Metrics)(nil)

func TestOpenLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log, err := OpenLog(LogOptions{Level: "warn", Format: "json", Stderr: &out})
	if err != nil {
		t.Fatal(err)
	}
	log.Info("hidden")
	log.Warn("shown", slog.Int("n", 1))
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("decoding the line %q: %v", out.String(), err)
	}
	if line["msg"] != "shown" || line["n"] != 1.0 {
		t.Errorf("got %v, want msg shown and n 1", line)
	}
	for _, bad := range [][2]string{{"loud", "json"}, {"info", "xml"}} {
		if _, err := OpenLog(LogOptions{Level: bad[0], Format: bad[1], Stderr: &out}); err == nil {
			t.Errorf("OpenLog with level and format %q succeeded, want an error", bad)
		}
	}
}

// TestBridges is not parallel: klog's logger is global.
func TestBridges(t *testing.T) {
	for _, c := range []struct {
		level string
		want  []string
		never []string
	}{
		{
			"info",
			[]string{
				"zap warns", "zap fails", "klog fails", "library=etcd", "library=kubernetes", "shard=7",
				`msg="client fails" library=etcd error="no member"`,
			},
			[]string{
				"zap chats", "klog chats", "simple token", "zap server stopped", "parse request", "client is gone",
				"client chats", "client gave up",
			},
		},
		{"debug", []string{"zap chats", "simple token", "klog chats", "level=DEBUG"}, []string{"level=INFO"}},
	} {
		var out bytes.Buffer
		opened, err := OpenLog(LogOptions{Level: c.level, Format: "text", Stderr: &out})
		if err != nil {
			t.Fatal(err)
		}
		log := opened.Logger
		z := ZapLogger(Library(log, "etcd")).With(zap.Int("shard", 7))
		z.Info("zap chats")
		z.Error("zap server stopped", zap.Error(fmt.Errorf("accept: %w", net.ErrClosed)))
		z.Warn("simple token is not cryptographically signed")
		z.Warn("zap warns", zap.Namespace("raft"), zap.String("term", "2"))
		z.Error("zap fails", zap.Error(fmt.Errorf("disk")))
		BridgeKlog(log)
		klog.InfoS("klog chats", "key", "value")
		klog.ErrorS(fmt.Errorf("oops"), "klog fails")
		klog.ErrorS(errors.New("unable to parse requirement"), "Couldn't parse request")
		klog.ErrorS(fmt.Errorf("apiserver received an error: %w", context.Canceled), "klog client is gone")
		client, err := logutil.CreateDefaultZapLogger(zap.InfoLevel)
		if err != nil {
			t.Fatal(err)
		}
		client.Info("client chats")
		client.Warn("client fails", zap.Error(errors.New("no member")))
		client.Warn("client gave up", zap.String("error", "rpc error: code = Canceled desc = context canceled"))
		klog.Flush()
		klog.ClearLogger()
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("level %s: log does not contain %q:\n%s", c.level, want, out.String())
			}
		}
		for _, never := range c.never {
			if strings.Contains(out.String(), never) {
				t.Errorf("level %s: log contains %q:\n%s", c.level, never, out.String())
			}
		}
		if !strings.Contains(out.String(), "raft.term=2") || !strings.Contains(out.String(), "disk") {
			t.Errorf("log does not contain all fields:\n%s", out.String())
		}
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	m := NewMetrics(version.Info{Version: "1.2.3", Commit: "abc", Go: "go1"})
	m.ObserveRequest("messages", "/v1/{topic}", "POST", 201, 3*time.Millisecond, 10)
	m.ObserveRequest("messages", "/v1/{topic}", "POST", 201, 3*time.Millisecond, 10)
	m.ObserveRequest("messages", "/v1/{topic}", "BREW", 418, time.Millisecond, 0)
	m.ObserveRequest("messages", "/v1/{topic}", "GET", 0, time.Millisecond, 0)
	w := httptest.NewRecorder()
	m.Handler(slog.New(slog.DiscardHandler)).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`freshet_http_requests_total{class="2xx",method="POST",route="/v1/{topic}",surface="messages"} 2`,
		`freshet_http_requests_total{class="4xx",method="OTHER",route="/v1/{topic}",surface="messages"} 1`,
		`freshet_http_response_bytes_total{method="POST",route="/v1/{topic}",surface="messages"} 20`,
		`freshet_http_request_duration_seconds_count{method="POST",route="/v1/{topic}",surface="messages"} 2`,
		`freshet_build_info{commit="abc",go="go1",version="1.2.3"} 1`,
		"go_goroutines ", "process_open_fds ",
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("metrics do not contain %s", want)
		}
	}
	if n := strings.Count(w.Body.String(), "# TYPE go_goroutines "); n != 1 {
		t.Errorf("metrics contain go_goroutines %d times, want once", n)
	}
}

func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	m := NewMetrics(version.Get())
	for i := range maxSeries + 100 {
		m.ObserveRequest("messages", fmt.Sprint("/raw/", i), "GET", 200, 0, 0)
	}
	if n := len(*m.series.Load()); n != maxSeries+1 {
		t.Errorf("got %d series, want %d", n, maxSeries+1)
	}
}

func TestObserveRequestAllocatesNothing(t *testing.T) {
	m := NewMetrics(version.Get())
	if n := testing.AllocsPerRun(100, func() {
		m.ObserveRequest("messages", "/v1/{topic}", "POST", 201, time.Millisecond, 10)
	}); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}

func BenchmarkObserveRequest(b *testing.B) {
	m := NewMetrics(version.Get())
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m.ObserveRequest("messages", "/v1/{topic}", "POST", 201, time.Millisecond, 10)
		}
	})
}

func TestCgroupLimit(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  int64
	}{
		"none": {fstest.MapFS{}, 0},
		"v2": {fstest.MapFS{
			"proc/self/cgroup": file("0::/system.slice/freshet.service\n"),
			"sys/fs/cgroup/system.slice/freshet.service/memory.max": file("536870912\n"),
		}, 536870912},
		"v2 parent is tighter": {fstest.MapFS{
			"proc/self/cgroup":               file("0::/a/b\n"),
			"sys/fs/cgroup/a/b/memory.max":   file("max\n"),
			"sys/fs/cgroup/a/memory.max":     file("1000\n"),
			"sys/fs/cgroup/memory.max":       file("2000\n"),
			"sys/fs/cgroup/other/memory.max": file("1\n"),
		}, 1000},
		"v2 in a container": {fstest.MapFS{
			"proc/self/cgroup":         file("0::/docker/abc\n"),
			"sys/fs/cgroup/memory.max": file("3000\n"),
		}, 3000},
		"v2 unlimited": {fstest.MapFS{
			"proc/self/cgroup":         file("0::/\n"),
			"sys/fs/cgroup/memory.max": file("max\n"),
		}, 0},
		"v1": {fstest.MapFS{
			"proc/self/cgroup": file("12:cpu,cpuacct:/x\n5:memory:/x\n"),
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": file("4000\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes":   file("9223372036854771712\n"),
		}, 4000},
		"nonsense": {fstest.MapFS{
			"proc/self/cgroup":         file("what\n0::../../etc\n"),
			"sys/fs/cgroup/memory.max": file("-5\n"),
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := cgroupLimit(c.files)
			if ok != (c.want != 0) || (ok && got != c.want) {
				t.Errorf("got %d, %v, want %d", got, ok, c.want)
			}
		})
	}
}

func TestMemoryIsReturnedWhenIdle(t *testing.T) {
	t.Parallel()
	const mega = 1 << 20
	var k memoryReturner
	for _, look := range []struct {
		what            string
		held, allocated uint64
		due             bool
	}{
		{"still starting", 200 * mega, 500 * mega, false},
		{"started", 200 * mega, 510 * mega, true}, // holds 100 after the return
		{"nothing new", 120 * mega, 520 * mega, false},
		{"a burst", 900 * mega, 2_000 * mega, false},
		{"after the burst", 900 * mega, 2_010 * mega, true}, // holds 600 after the return
		{"needed all the time", 610 * mega, 2_020 * mega, false},
		{"less automatically", 300 * mega, 2_030 * mega, false},
		{"more again", 400 * mega, 2_040 * mega, true},
	} {
		if due := k.due(look.held, look.allocated); due != look.due {
			t.Errorf("%s: got due %v, want %v", look.what, due, look.due)
		}
		switch look.what {
		case "started":
			k.lowest = 100 * mega
		case "after the burst":
			k.lowest = 600 * mega
		}
	}
	if held, allocated := memoryHeld(); held == 0 || allocated == 0 {
		t.Errorf("memoryHeld: got %d, %d, want neither to be 0", held, allocated)
	}
}

// TestMetricsAreLean: Handler does not serve the metrics of libraries, HandlerForAll
// does.
func TestMetricsAreLean(t *testing.T) {
	t.Parallel()
	m := NewMetrics(version.Get())
	get := func(h http.Handler) (text string, families int) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		return w.Body.String(), strings.Count(w.Body.String(), "# TYPE ")
	}
	log := slog.New(slog.DiscardHandler)
	lean, few := get(m.Handler(log))
	all, many := get(m.HandlerForAll(log))
	if few > 30 || strings.Contains(lean, "go_memstats_alloc_bytes") ||
		!strings.Contains(lean, "process_resident_memory_bytes ") {
		t.Errorf("got %d families, want at most 30:\n%s", few, lean)
	}
	if many <= few || !strings.Contains(all, "go_memstats_alloc_bytes") ||
		strings.Count(all, "# TYPE go_goroutines ") != 1 {
		t.Errorf("got %d families, want more than %d, each once", many, few)
	}
}

// TestReopen: after the file was renamed and reopened, lines go to a new file.
func TestReopen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "freshet.log")
	log, err := OpenLog(LogOptions{Level: "info", Format: "text", File: path})
	if err != nil {
		t.Fatal(err)
	}
	log.Debug("hidden")
	log.Info("one")
	if err := errors.Join(os.Rename(path, path+".1"), log.Reopen(), log.SetLevel("debug")); err != nil {
		t.Fatal(err)
	}
	log.Debug("two")
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{path + ".1": "level=INFO msg=one\n", path: "level=DEBUG msg=two\n"} {
		text, err := os.ReadFile(file)
		if err != nil || strings.Count(string(text), "\n") != 1 || !strings.HasSuffix(string(text), want) {
			t.Errorf("%s: got %q, %v, want one line with %q", file, text, err, want)
		}
	}
}
