package registryapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"freshet/internal/registry/schemas"
)

// The benchmarks come in pairs with the same clients: a bare handler that reads the same
// request and writes the same response, and the registry.

const benchSchema = `{"type":"record","name":"Order","namespace":"shop","fields":[` +
	`{"name":"id","type":"long"},` +
	`{"name":"customer","type":"string"},` +
	`{"name":"items","type":{"type":"array","items":{"type":"record","name":"Item","fields":[` +
	`{"name":"sku","type":"string"},` +
	`{"name":"quantity","type":"int"},` +
	`{"name":"price","type":{"type":"bytes","logicalType":"decimal","precision":10,"scale":2}}]}}},` +
	`{"name":"placed","type":{"type":"long","logicalType":"timestamp-millis"}}%s]}`

func benchDraft(i int) string {
	return fmt.Sprintf(benchSchema, fmt.Sprintf(`,{"name":"extra_%d","type":["null","string"],"default":null}`, i))
}

func body(schema string) []byte {
	b, _ := json.Marshal(map[string]string{"schema": schema})
	return b
}

// bare reads a request and writes a fixed response.
func bare(reply []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/vnd.schemaregistry.v1+json")
		_, _ = w.Write(reply)
	})
}

// hammer sends concurrent requests over many connections.
func hammer(b *testing.B, handler http.Handler, clients int, request func(n int64, base string) *http.Request) {
	b.Helper()
	s := httptest.NewServer(handler)
	defer s.Close()
	transport := &http.Transport{MaxIdleConnsPerHost: clients, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var n atomic.Int64
	b.SetParallelism((clients + 1) / 2)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			req := request(n.Add(1), s.URL)
			req.Header.Set("Authorization", "Bearer admin")
			res, err := client.Do(req)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			if res.StatusCode != http.StatusOK {
				b.Errorf("got status %d, want 200", res.StatusCode)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
}

func get(path string) func(int64, string) *http.Request {
	return func(_ int64, base string) *http.Request {
		req, _ := http.NewRequest(http.MethodGet, base+path, nil)
		return req
	}
}

func post(path func(n int64) string, body func(n int64) []byte) func(int64, string) *http.Request {
	return func(n int64, base string) *http.Request {
		req, _ := http.NewRequest(http.MethodPost, base+path(n), bytes.NewReader(body(n)))
		return req
	}
}

func BenchmarkGetSchema(b *testing.B) {
	r := newRegistry(b, schemas.Options{})
	if _, err := r.Register(b.Context(), "orders-value",
		&schemas.Draft{Type: schemas.Avro, Text: benchDraft(0)}); err != nil {
		b.Fatal(err)
	}
	s, err := r.SchemaByID(b.Context(), 1)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("bare", func(b *testing.B) { hammer(b, bare(s.Body()), 64, get("/schemas/ids/1")) })
	b.Run("registry", func(b *testing.B) { hammer(b, newHandler(r), 64, get("/schemas/ids/1")) })
}

func BenchmarkRegisterKnown(b *testing.B) {
	r := newRegistry(b, schemas.Options{})
	request := post(func(int64) string { return "/subjects/orders-value/versions" },
		func(int64) []byte { return body(benchDraft(0)) })
	b.Run("bare", func(b *testing.B) { hammer(b, bare([]byte(`{"id":1}`)), 64, request) })
	b.Run("registry", func(b *testing.B) { hammer(b, newHandler(r), 64, request) })
}

func BenchmarkRegisterNew(b *testing.B) {
	r := newRegistry(b, schemas.Options{})
	var total atomic.Int64 // not reset if the benchmark runs again with a larger N
	request := func(_ int64, base string) *http.Request {
		n := total.Add(1)
		return post(func(int64) string { return fmt.Sprintf("/subjects/s-%d/versions", n%1000) },
			func(int64) []byte { return body(benchDraft(int(n))) })(n, base)
	}
	b.Run("bare", func(b *testing.B) { hammer(b, bare([]byte(`{"id":1}`)), 16, request) })
	b.Run("registry", func(b *testing.B) { hammer(b, newHandler(r), 16, request) })
}

func BenchmarkListSubjects(b *testing.B) {
	r := newRegistry(b, schemas.Options{})
	var file strings.Builder
	file.WriteString(`{"kind":"registry","format":"freshet-registry","edition":1}` + "\n")
	const n = 100_000
	for i := range n {
		fmt.Fprintf(&file, `{"kind":"version","subject":"topic-%d-value","version":1,"id":1,"schema":"\"string\""}`+
			"\n", i)
	}
	fmt.Fprintf(&file, `{"kind":"end","lines":%d}`, n+1)
	if _, err := r.Import(b.Context(), strings.NewReader(file.String()), nil); err != nil {
		b.Fatal(err)
	}
	b.Run("registry", func(b *testing.B) { hammer(b, newHandler(r), 2, get("/subjects")) })
}

// discard is a response writer that discards the body.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

// BenchmarkHandler measures the handler without a network.
func BenchmarkHandler(b *testing.B) {
	r := newRegistry(b, schemas.Options{})
	if _, err := r.Register(b.Context(), "orders-value",
		&schemas.Draft{Type: schemas.Avro, Text: benchDraft(0)}); err != nil {
		b.Fatal(err)
	}
	h := newHandler(r)
	benchmark := func(name, method, path string, body []byte) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			reader := bytes.NewReader(body)
			req := httptest.NewRequest(method, path, reader)
			req.Header.Set("Authorization", "Bearer admin")
			w := discard{header: http.Header{}}
			for b.Loop() {
				reader.Reset(body)
				clear(w.header)
				h.ServeHTTP(w, req)
			}
		})
	}
	benchmark("get", http.MethodGet, "/schemas/ids/1", nil)
	benchmark("version", http.MethodGet, "/subjects/orders-value/versions/latest", nil)
	benchmark("register known", http.MethodPost, "/subjects/orders-value/versions", body(benchDraft(0)))
}
