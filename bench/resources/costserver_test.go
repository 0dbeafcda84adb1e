package resources

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"freshet/bench/process"
)

// costCallers is the number of concurrent callers, each with its own connection.
const costCallers = 64

// costRows lists the calls in the order in which a round makes them.
var costRows = []string{
	"create", "get", "get, any version", "merge patch", "server-side apply",
	"list of 1,000", "delete",
}

// costServer is a Kubernetes-style API and one of its kinds. The benchmark calls it with
// JSON over HTTP/1.1 and TLS, using only net/http.
type costServer struct {
	name, url, token string
	pids             []string // processes whose CPU time is counted
	apiVersion, kind string
	path, plural     string // of the kind
	body             string // field that holds the object's content: spec or data

	client *http.Client
	rounds int
}

// connect opens the connections before the first round.
func (s *costServer) connect(ctx context.Context) error {
	transport := &http.Transport{
		//nolint:gosec // loopback, with a certificate made for the run
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		MaxConnsPerHost: costCallers, MaxIdleConnsPerHost: costCallers,
		DisableCompression: true, // gzip costs the same everywhere
		TLSNextProto:       map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
	s.client = &http.Client{Transport: transport, Timeout: time.Minute}
	return s.each(costCallers, func(int) error { return s.call(ctx, http.MethodGet, "/version", "", nil, nil) })
}

func (s *costServer) close() {
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
}

// call makes one call, reads the response and fails unless the status is 2xx.
func (s *costServer) call(ctx context.Context, method, path, contentType string, body []byte,
	look func([]byte) error,
) error {
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Accept", jsonType)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	content, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	switch {
	case err != nil:
		return err
	case response.StatusCode/100 != 2:
		return fmt.Errorf("%s %s at %s: %s: %s", method, path, s.name, response.Status, content)
	case look != nil:
		return look(content)
	}
	return nil
}

// each distributes n calls over the callers.
func (s *costServer) each(n int, call func(i int) error) error {
	var wg sync.WaitGroup
	var next atomic.Int64
	failed := make(chan error, costCallers)
	for range min(costCallers, n) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if err := call(int(i)); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(failed)
	var all error
	for err := range failed {
		all = errors.Join(all, err)
	}
	return all
}

// cpuTime returns the CPU time of the server's processes so far.
func (s *costServer) cpuTime() (time.Duration, error) {
	var sum time.Duration
	for _, pid := range s.pids {
		n, err := strconv.Atoi(strings.TrimSpace(pid))
		if err != nil {
			return 0, fmt.Errorf("process id of %s: %w", s.name, err)
		}
		one, err := process.CPU(n)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", s.name, err)
		}
		sum += one
	}
	return sum, nil
}

// runnableTime returns the time that the server's threads ran or waited for a CPU. On a busy
// machine a thread with work may run rarely, so CPU time alone would look idle.
func (s *costServer) runnableTime() (time.Duration, error) {
	var sum time.Duration
	for _, pid := range s.pids {
		threads, err := filepath.Glob(filepath.Join("/proc", strings.TrimSpace(pid), "task", "*", "schedstat"))
		if err != nil {
			return 0, err
		}
		for _, thread := range threads {
			var ran, waited time.Duration
			if stat, err := os.ReadFile(thread); err != nil {
				continue // the thread has ended
			} else if _, err := fmt.Sscan(string(stat), &ran, &waited); err != nil {
				return 0, fmt.Errorf("%s: %w", thread, err)
			}
			sum += ran + waited
		}
	}
	return sum, nil
}

// cpuTimeWhenIdle waits until the server has finished the work that the calls caused, such as
// its controllers' writes, and then returns its CPU time.
func (s *costServer) cpuTimeWhenIdle(ctx context.Context) (time.Duration, error) {
	const window, idle, most = 100 * time.Millisecond, 10 * time.Millisecond, 300
	ticker := time.NewTicker(window)
	defer ticker.Stop()
	before, err := s.runnableTime()
	for i, quiet := 0, 0; err == nil && i < most && quiet < 2; i++ {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		var now time.Duration
		now, err = s.runnableTime()
		if quiet++; now-before > idle {
			quiet = 0
		}
		before = now
	}
	if err != nil {
		return 0, err
	}
	return s.cpuTime()
}

// round makes every call in a namespace of its own and adds the cost of each, in ms, to measured.
func (s *costServer) round(tb testing.TB, n amounts, measured map[string][]float64) {
	tb.Helper()
	s.rounds++
	ctx, namespace := tb.Context(), fmt.Sprintf("cost-%d-%d", os.Getpid(), s.rounds)
	err := s.call(ctx, http.MethodPost, "/api/v1/namespaces", jsonType,
		fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, namespace), nil)
	if err != nil {
		tb.Fatal(err)
	}
	calls := s.calls(ctx, s.path+"/namespaces/"+namespace+"/"+s.plural, n)
	for _, row := range costRows {
		before, err := s.cpuTimeWhenIdle(ctx)
		if err != nil {
			tb.Fatal(err)
		}
		if err := s.each(calls[row].times, calls[row].call); err != nil {
			tb.Fatalf("%s: %v", row, err)
		}
		after, err := s.cpuTimeWhenIdle(ctx)
		if err != nil {
			tb.Fatal(err)
		}
		measured[row] = append(measured[row], (after-before).Seconds()*1000/float64(calls[row].times))
	}
}

type costCall struct {
	times int
	call  func(i int) error
}

// calls returns the calls of a round by row.
func (s *costServer) calls(ctx context.Context, collection string, n amounts) map[string]costCall {
	item := func(i int) string { return fmt.Sprintf("%s/o%d", collection, i%min(100, n.objects)) }
	patch := func(i int, query, contentType, body string) error {
		return s.call(ctx, http.MethodPatch, item(i)+query, contentType, []byte(body), nil)
	}
	return map[string]costCall{
		"create": {n.objects, func(i int) error {
			return s.call(ctx, http.MethodPost, collection, jsonType, s.object(fmt.Sprint("o", i)), nil)
		}},
		"get": {n.reads, func(i int) error { return s.call(ctx, http.MethodGet, item(i), "", nil, nil) }},
		"get, any version": {n.reads, func(i int) error {
			return s.call(ctx, http.MethodGet, item(i)+"?resourceVersion=0", "", nil, nil)
		}},
		"merge patch": {n.writes, func(i int) error {
			return patch(i, "", "application/merge-patch+json", fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, i))
		}},
		"server-side apply": {n.writes, func(i int) error {
			return patch(i, "?fieldManager=bench&force=true", "application/apply-patch+yaml", fmt.Sprintf(
				`{"apiVersion":%q,"kind":%q,"metadata":{"name":"o%d","labels":{"n":"%d"}}}`, s.apiVersion, s.kind,
				i%min(100, n.objects), i))
		}},
		"list of 1,000": {n.lists, func(int) error {
			return s.call(ctx, http.MethodGet, collection, "", nil, func(content []byte) error {
				if found := bytes.Count(content, []byte(`"uid":`)); found != n.objects {
					return fmt.Errorf("list at %s has %d items, want %d", s.name, found, n.objects)
				}
				return nil
			})
		}},
		"delete": {n.objects, func(i int) error {
			return s.call(ctx, http.MethodDelete, fmt.Sprintf("%s/o%d", collection, i), "", nil, nil)
		}},
	}
}

// object returns an object of about 1 kB in JSON.
func (s *costServer) object(name string) []byte {
	object, _ := json.Marshal(map[string]any{ // strings always marshal
		"apiVersion": s.apiVersion, "kind": s.kind,
		"metadata": map[string]any{
			"name": name, "labels": map[string]any{"team": "bench"},
			"annotations": map[string]any{"about": strings.Repeat("x", 400)},
		},
		s.body: map[string]any{"email": name + "@example.com"},
	})
	return object
}

// median returns the middle value, or the upper one of the two.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return slices.SortedFunc(slices.Values(values), cmp.Compare[float64])[len(values)/2]
}
