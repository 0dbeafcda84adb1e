// Package resources measures the resource API of the real binary with client-go over
// HTTPS, in JSON and in protobuf: single calls, lists of a thousand objects, and the rate
// at which changes reach many watchers. BenchmarkBare measures the same client against a
// handler that does nothing. BenchmarkCost compares the CPU time of calls with that of a
// kube-apiserver or of an earlier build.
package resources

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	apply "freshet/api/generated/applyconfiguration/api/v1alpha1"
	"freshet/api/generated/clientset/versioned"
	typed "freshet/api/generated/clientset/versioned/typed/api/v1alpha1"
	"freshet/api/v1alpha1"
	"freshet/test/testserver"
)

const (
	callers  = 16
	manyList = 1000
	watchers = 100
)

const protobuf = "application/vnd.kubernetes.protobuf"

var forms = []string{"json", "protobuf"}

// shared is the server that all benchmarks use; the first of them starts it.
var shared struct {
	once   sync.Once
	server *testserver.Server
	dir    string
	err    error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.server != nil {
		if err := shared.server.Stop(time.Minute); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		_ = os.RemoveAll(shared.dir) // the system's own temporary directory
	}
	os.Exit(code)
}

func server(b *testing.B) *testserver.Server {
	b.Helper()
	shared.once.Do(start)
	if shared.err != nil {
		b.Fatal(shared.err)
	}
	return shared.server
}

// start starts the shared server. Its directory must outlive the benchmark that started it.
func start() {
	if shared.dir, shared.err = os.MkdirTemp("", "freshet-bench-"); shared.err != nil {
		return
	}
	var binary string
	if binary, shared.err = testserver.Binary(context.Background(), shared.dir); shared.err == nil {
		shared.server, shared.err = testserver.Start(context.Background(), binary, shared.dir, testserver.Options{})
	}
}

func config(b *testing.B, form string) *rest.Config {
	b.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", filepath.Join(server(b).DataDir, "kubeconfig"))
	if err != nil {
		b.Fatal(err)
	}
	c.QPS = -1
	if form == "protobuf" {
		c.ContentType, c.AcceptContentTypes = protobuf, protobuf
	}
	return c
}

var organizations atomic.Int64

// users returns a client for an organization that no other benchmark uses.
func users(b *testing.B, form string) typed.UserInterface {
	b.Helper()
	client, err := versioned.NewForConfig(config(b, form))
	if err != nil {
		b.Fatal(err)
	}
	return client.CloudV1alpha1().Users(fmt.Sprint("bench-", organizations.Add(1)))
}

func user(name string) *v1alpha1.User {
	return &v1alpha1.User{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"team": "bench"},
			Annotations: map[string]string{"about": strings.Repeat("x", 400)},
		},
		Spec: v1alpha1.UserSpec{Email: name + "@example.com"},
	}
}

func fill(b *testing.B, api typed.UserInterface, n int) {
	b.Helper()
	var wg sync.WaitGroup
	numbers := make(chan int)
	for range callers {
		wg.Go(func() {
			for i := range numbers {
				if _, err := api.Create(b.Context(), user(fmt.Sprint("u", i)), metav1.CreateOptions{}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	wg.Wait()
}

// inParallel has concurrent callers make b.N calls.
func inParallel(b *testing.B, call func(ctx context.Context, i int64) error) {
	b.Helper()
	var next atomic.Int64
	cpu := cpuTime(b)
	b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := call(b.Context(), next.Add(1)); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.StopTimer()
	report(b, float64(b.N), cpu)
}

// report reports the calls per second and the server's CPU time per call. The latter is
// also valid on a busy machine.
func report(b *testing.B, n float64, cpu time.Duration) {
	b.Helper()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(n/b.Elapsed().Seconds(), "per-second")
	if shared.server != nil {
		b.ReportMetric(float64((cpuTime(b)-cpu).Microseconds())/n, "server-cpu-µs")
	}
}

// cpuTime returns the CPU time of the server so far.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	if shared.server == nil {
		return 0
	}
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(shared.server.PID()), "stat"))
	if err != nil {
		return 0 // no /proc on this system
	}
	const user, system, perTick = 11, 12, 10 * time.Millisecond // fields after the process name, in 1/100 s
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var ticks int64
	for _, field := range []int{user, system} {
		n, err := strconv.ParseInt(fields[field], 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * perTick
}

func each(b *testing.B, run func(b *testing.B, api typed.UserInterface)) {
	b.Helper()
	for _, form := range forms {
		b.Run(form, func(b *testing.B) { run(b, users(b, form)) })
	}
}

// BenchmarkBare measures a handler that reads the body and returns one of the same size.
func BenchmarkBare(b *testing.B) {
	body, err := user("bare").Marshal()
	if err != nil {
		b.Fatal(err)
	}
	bare := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		buffer := make([]byte, 2048)
		for {
			if _, err := r.Body.Read(buffer); err != nil {
				break
			}
		}
		w.Header().Set("Content-Type", jsonType)
		// The write error is ignored: the client counts failures.
		_, _ = w.Write([]byte(`{"kind":"User","apiVersion":"cloud.vendor.io/v1alpha1","metadata":{"name":"` +
			strings.Repeat("x", len(body)) + `"}}`))
	}))
	bare.EnableHTTP2 = true
	bare.StartTLS()
	defer bare.Close()
	client, err := versioned.NewForConfig(&rest.Config{
		Host: bare.URL, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	})
	if err != nil {
		b.Fatal(err)
	}
	api := client.CloudV1alpha1().Users("bare")
	inParallel(b, func(ctx context.Context, _ int64) error {
		_, err := api.Create(ctx, user("bare"), metav1.CreateOptions{})
		return err
	})
}

const jsonType = "application/json"

func BenchmarkCreate(b *testing.B) {
	each(b, func(b *testing.B, api typed.UserInterface) {
		inParallel(b, func(ctx context.Context, i int64) error {
			_, err := api.Create(ctx, user(fmt.Sprint("u", i)), metav1.CreateOptions{})
			return err
		})
	})
}

func BenchmarkGet(b *testing.B) {
	each(b, func(b *testing.B, api typed.UserInterface) {
		fill(b, api, 100)
		inParallel(b, func(ctx context.Context, i int64) error {
			_, err := api.Get(ctx, fmt.Sprint("u", i%100), metav1.GetOptions{})
			return err
		})
	})
}

// BenchmarkGetAnyVersion requests resourceVersion 0, which the server may serve from its cache.
func BenchmarkGetAnyVersion(b *testing.B) {
	each(b, func(b *testing.B, api typed.UserInterface) {
		fill(b, api, 100)
		inParallel(b, func(ctx context.Context, i int64) error {
			_, err := api.Get(ctx, fmt.Sprint("u", i%100), metav1.GetOptions{ResourceVersion: "0"})
			return err
		})
	})
}

func BenchmarkMergePatch(b *testing.B) {
	each(b, func(b *testing.B, api typed.UserInterface) {
		fill(b, api, 100)
		inParallel(b, func(ctx context.Context, i int64) error {
			patch := fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, i)
			_, err := api.Patch(ctx, fmt.Sprint("u", i%100), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			return err
		})
	})
}

func BenchmarkApply(b *testing.B) {
	each(b, func(b *testing.B, api typed.UserInterface) {
		fill(b, api, 100)
		inParallel(b, func(ctx context.Context, i int64) error {
			name := fmt.Sprint("u", i%100)
			desired := apply.User(name, "").WithLabels(map[string]string{"n": strconv.FormatInt(i, 10)})
			desired.Namespace = nil
			_, err := api.Apply(ctx, desired, metav1.ApplyOptions{FieldManager: "bench", Force: true})
			return err
		})
	})
}

func BenchmarkList1000(b *testing.B) {
	each(b, func(b *testing.B, api typed.UserInterface) {
		fill(b, api, manyList)
		inParallel(b, func(ctx context.Context, _ int64) error {
			list, err := api.List(ctx, metav1.ListOptions{})
			if err == nil && len(list.Items) != manyList {
				return fmt.Errorf("list has %d items, want %d", len(list.Items), manyList)
			}
			return err
		})
	})
}

// BenchmarkWatchFanOut counts arriving events: every watcher receives each change.
func BenchmarkWatchFanOut(b *testing.B) {
	each(b, func(b *testing.B, api typed.UserInterface) {
		fill(b, api, 1)
		var arrived sync.WaitGroup
		for range watchers {
			w, err := api.Watch(b.Context(), metav1.ListOptions{LabelSelector: "fan", ResourceVersion: "0"})
			if err != nil {
				b.Fatal(err)
			}
			defer w.Stop()
			arrived.Go(func() {
				for range b.N {
					<-w.ResultChan()
				}
			})
		}
		cpu := cpuTime(b)
		b.ResetTimer()
		for i := range b.N {
			patch := fmt.Sprintf(`{"metadata":{"labels":{"fan":"%d"}}}`, i)
			if _, err := api.Patch(b.Context(), "u0", types.MergePatchType, []byte(patch),
				metav1.PatchOptions{}); err != nil {
				b.Fatal(err)
			}
		}
		arrived.Wait()
		b.StopTimer()
		report(b, float64(b.N)*watchers, cpu)
	})
}

// BenchmarkDelete deletes objects with a finalizer, so each delete is two writes.
func BenchmarkDelete(b *testing.B) {
	each(b, func(b *testing.B, api typed.UserInterface) {
		fill(b, api, b.N)
		inParallel(b, func(ctx context.Context, i int64) error {
			return api.Delete(ctx, fmt.Sprint("u", i-1), metav1.DeleteOptions{})
		})
	})
}
