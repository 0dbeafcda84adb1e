package audit_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"freshet/internal/ops/audit"
)

func open(t testing.TB, opts audit.Options) (*audit.Log, string) {
	t.Helper()
	if opts.Path == "" {
		opts.Path = filepath.Join(t.TempDir(), "sub", "audit.log")
	}
	l, err := audit.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, opts.Path
}

var sample = audit.Record{
	Time: time.Date(2026, 5, 4, 3, 2, 1, 0, time.FixedZone("x", 3600)), Surface: "resources",
	Principal: "ci@acme.test", Organization: "acme", KeyID: "k1", Verb: "create", Resource: "apikeys",
	Scope: "organization/acme/apikey/x", Permission: "cloud.apikeys.create", Decision: audit.Allowed,
	By: "role binding", Role: "account-admin", Binding: "b", Status: 201, Source: "192.0.2.7", UserAgent: "curl/8",
	RequestID: "R1",
}

func tail(t testing.TB, l *audit.Log, q audit.Query) []audit.Record {
	t.Helper()
	records, err := l.Tail(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func TestRecordIsOneLineOfJSON(t *testing.T) {
	t.Parallel()
	l, path := open(t, audit.Options{})
	l.Record(sample)
	if err := l.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"time":"2026-05-04T02:02:01Z","surface":"resources","principal":"ci@acme.test",` +
		`"organization":"acme","keyId":"k1","verb":"create","resource":"apikeys",` +
		`"scope":"organization/acme/apikey/x","permission":"cloud.apikeys.create","decision":"allow",` +
		`"by":"role binding","role":"account-admin","binding":"b",` +
		`"status":201,"source":"192.0.2.7","userAgent":"curl/8","requestId":"R1"}` + "\n"
	if string(data) != want {
		t.Errorf("got line  %s\nwant line %s", data, want)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, error %v, want 0600", info.Mode(), err)
	}
	if got := tail(t, l, audit.Query{}); len(got) != 1 || got[0].Scope != sample.Scope || got[0].Status != 201 {
		t.Errorf("Tail: got %+v, want the one record", got)
	}
}

func TestTailFiltersAndOrders(t *testing.T) {
	t.Parallel()
	l, _ := open(t, audit.Options{})
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 300 {
		l.Record(audit.Record{
			Time: start.Add(time.Duration(i) * time.Second), Surface: []string{"resources", "messages"}[i%2],
			Organization: []string{"acme", "other", "acme2"}[i%3], Principal: fmt.Sprintf("p%d", i%5),
			Verb:     []string{"create", "delete"}[i/2%2],
			Resource: "topics", Decision: []audit.Decision{audit.Allowed, audit.Denied}[i/7%2],
			RequestID: fmt.Sprint("R", i), Status: i,
		})
	}
	tests := map[string]struct {
		q     audit.Query
		n     int
		first int // Status of the newest
	}{
		"default":      {audit.Query{}, 100, 299},
		"limit":        {audit.Query{Limit: 7}, 7, 299},
		"all":          {audit.Query{Limit: 5000}, 300, 299},
		"organization": {audit.Query{Organization: "acme", Limit: 1000}, 100, 297},
		"principal":    {audit.Query{Principal: "p3", Limit: 1000}, 60, 298},
		"surface":      {audit.Query{Surface: "messages", Limit: 1000}, 150, 299},
		"denials":      {audit.Query{Decision: audit.Denied, Limit: 1000}, 147, 293},
		"request":      {audit.Query{RequestID: "R17"}, 1, 17},
		"verb":         {audit.Query{Verb: "delete", Limit: 1000}, 150, 299},
		"since":        {audit.Query{Since: start.Add(290 * time.Second)}, 10, 299},
		"until":        {audit.Query{Until: start.Add(10 * time.Second)}, 10, 9},
		"window":       {audit.Query{Since: start.Add(100 * time.Second), Until: start.Add(105 * time.Second)}, 5, 104},
		"nothing":      {audit.Query{Organization: "none"}, 0, 0},
		"quoted name":  {audit.Query{Organization: "a\"b"}, 0, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := tail(t, l, tc.q)
			if len(got) != tc.n || (len(got) > 0 && got[0].Status != tc.first) {
				t.Fatalf("got %d records, want %d; newest %+v", len(got), tc.n, got[:min(1, len(got))])
			}
			for i := 1; i < len(got); i++ {
				if got[i].Time.After(got[i-1].Time) {
					t.Fatal("records are not ordered newest first")
				}
			}
		})
	}
}

func TestRotationKeepsTheLastFilesAndTailReadsThem(t *testing.T) {
	t.Parallel()
	l, path := open(t, audit.Options{MaxBytes: 2000, MaxRotated: 3})
	for i := range 100 {
		r := sample
		r.Status = i
		l.Record(r)
		if err := l.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	names, err := filepath.Glob(path + "*")
	if err != nil || len(names) != 4 {
		t.Fatalf("got files %v, error %v, want 4", names, err)
	}
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil || info.Size() > 2000 || info.Size() == 0 {
			t.Errorf("%s has %d bytes, want 1 to 2000", name, info.Size())
		}
	}
	got := tail(t, l, audit.Query{Limit: 1000})
	if len(got) < 12 || got[0].Status != 99 {
		t.Fatalf("got %d records, newest %d, want at least 12, newest 99", len(got), got[0].Status)
	}
	for i := 1; i < len(got); i++ {
		if got[i].Status != got[i-1].Status-1 {
			t.Fatalf("got record %d after %d, want %d: a file is missing or out of order", got[i].Status,
				got[i-1].Status, got[i-1].Status-1)
		}
	}
}

func TestLogSurvivesAnIncompleteLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	l, _ := open(t, audit.Options{Path: path})
	l.Record(sample)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l.Record(sample) // dropped, but counted
	if got := l.Stats(); got.Written != 1 || got.Dropped != 1 {
		t.Errorf("got stats %+v, want 1 written and 1 dropped", got)
	}
	if _, err := l.Tail(context.Background(), audit.Query{}); !errors.Is(err, audit.ErrClosed) {
		t.Errorf("Tail of a closed log: got %v, want %v", err, audit.ErrClosed)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"time":"2026-05-`); err != nil { // a crash in the middle of a line
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	again, _ := open(t, audit.Options{Path: path})
	again.Record(sample)
	if got := tail(t, again, audit.Query{}); len(got) != 2 {
		t.Errorf("got %d records after the crash, want 2", len(got))
	}
}

// TestAStuckDiskDoesNotStopRequests writes to a pipe without a reader.
func TestAStuckDiskDoesNotStopRequests(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip("named pipes are not supported: ", err)
	}
	reader, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	l, err := audit.Open(audit.Options{Path: path, Queue: 16, QueueTimeout: 100 * time.Millisecond, SyncEvery: -1})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	const records = 5000 // far more than the pipe and the queue can hold
	for range records {
		l.Record(sample)
		if time.Since(start) > time.Minute { // eight minutes if each record waits for QueueTimeout
			t.Fatal("recording does not end, want that only the first record over the limit waits")
		}
	}
	if got := l.Stats(); got.Dropped == 0 || got.Queued != 16 {
		t.Errorf("got stats %+v, want some dropped and 16 queued", got)
	}
	// When the disk works again, a record reports the gap.
	lines := make(chan audit.Record, records)
	go func() {
		scanner := bufio.NewScanner(reader)
		for scanner.Scan() {
			var r audit.Record
			if json.Unmarshal(scanner.Bytes(), &r) == nil {
				lines <- r
			}
		}
		close(lines)
	}()
	for r := range lines {
		if r.Verb == "drop" {
			if r.Count == 0 || r.Surface != "audit" {
				t.Errorf("got gap record %+v, want surface audit and a count", r)
			}
			break
		}
	}
	_ = l.Close() // a pipe cannot be synced
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestConcurrentRecordersLoseNothing(t *testing.T) {
	t.Parallel()
	l, _ := open(t, audit.Options{MaxBytes: 50_000, MaxRotated: 100, QueueTimeout: 10 * time.Second})
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 250 {
				r := sample
				r.RequestID = fmt.Sprintf("%d-%d", worker, i)
				l.Record(r)
				if i%50 == 0 {
					tail(t, l, audit.Query{Limit: 3})
				}
			}
		})
	}
	wg.Wait()
	seen := make(map[string]bool)
	for _, r := range tail(t, l, audit.Query{Limit: 1000}) {
		seen[r.RequestID] = true
	}
	if got := l.Stats(); len(seen) != 1000 || got.Written != 1000 || got.Dropped+got.Failed != 0 {
		t.Errorf("got %d records, stats %+v, want 1000 written and none lost", len(seen), got)
	}
}

func TestNothingThatLooksLikeACredentialIsWritten(t *testing.T) {
	t.Parallel()
	const (
		jwt = "eyJhbGciOiJFUzI1NiIsImtpZCI6IngifQ.eyJpc3MiOiJodHRwOi8vMTI3LjAuMC4xIn0.c2lnbmF0dXJlc2lnbmF0dXJl"
		jwe = "eyJhbGciOiJSU0EtT0FFUCIsImVuYyI6IkEyNTZHQ00ifQ.Y2Vr.aXY.dGV4dA.dGFn"
		pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END"
	)
	l, path := open(t, audit.Options{})
	for _, secret := range []string{
		jwt, jwe, pem, "Bearer " + jwt, "x?token=" + jwt + "&y=1",
		strings.Repeat("a", 250) + jwt,
	} {
		var r audit.Record
		fill(reflect.ValueOf(&r).Elem(), secret)
		l.Record(r)
	}
	if err := l.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, piece := range []string{"eyJhbGci", "c2lnbmF0dXJl", "dGV4dA", "MIIEpAIB"} {
		if bytes.Contains(data, []byte(piece)) {
			t.Errorf("log contains %s", piece)
		}
	}
	if bytes.Count(data, []byte("\n")) != 6 || !bytes.Contains(data, []byte("[redacted]")) {
		t.Errorf("got log %s, want 6 lines with [redacted]", data)
	}
}

// fill sets every string field, so that the tests also cover new fields.
func fill(v reflect.Value, text string) {
	for i := range v.NumField() {
		if v.Field(i).Kind() == reflect.String {
			v.Field(i).SetString(text)
		}
	}
}

func TestFieldsAreBoundedAndValid(t *testing.T) {
	t.Parallel()
	l, path := open(t, audit.Options{})
	var r audit.Record
	fill(reflect.ValueOf(&r).Elem(), strings.Repeat("\xff\n\"", 1<<20))
	l.Record(r)
	var names audit.Record
	fill(reflect.ValueOf(&names).Elem(), "eyJ-is-a-name")
	l.Record(names)
	got := tail(t, l, audit.Query{})
	if len(got) != 2 || got[0].Scope != "eyJ-is-a-name" {
		t.Fatalf("Tail: got %+v, want two records, the newest with its name", got)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() > 64<<10 {
		t.Errorf("file of two lines has %d bytes, error %v, want at most 64 KiB", info.Size(), err)
	}
}

// TestRecordHasNoFieldForABody checks that Record has only names, numbers and times.
func TestRecordHasNoFieldForABody(t *testing.T) {
	t.Parallel()
	typ := reflect.TypeFor[audit.Record]()
	for i := range typ.NumField() {
		field := typ.Field(i)
		switch field.Type.Kind() {
		case reflect.String, reflect.Int, reflect.Int64:
		default:
			if field.Type != reflect.TypeFor[time.Time]() {
				t.Errorf("field %s has type %v, want a string, a number or a time", field.Name, field.Type)
			}
		}
		for _, word := range []string{
			"body", "payload", "message", "error", "header", "query", "path",
			"token", "secret",
		} {
			if strings.Contains(strings.ToLower(field.Name), word) {
				t.Errorf("name of field %s suggests content that must not be logged", field.Name)
			}
		}
	}
}

func FuzzTailOfAnyFile(f *testing.F) {
	f.Add([]byte(`{"time":"2026-05-04T02:02:01Z","surface":"x","verb":"y","decision":"allow"}` + "\n"))
	f.Add([]byte("\n\n\n{"))
	f.Add(bytes.Repeat([]byte("x"), 200_000))
	f.Add(append(bytes.Repeat([]byte("y\n"), 50_000), "{}"...))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "audit.log")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		l, _ := open(t, audit.Options{Path: path, SyncEvery: -1})
		l.Record(sample)
		if got := tail(t, l, audit.Query{RequestID: "R1"}); len(got) == 0 || got[0].Principal != sample.Principal {
			t.Fatalf("got %+v, want the record that was just written", got)
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	l, _ := open(b, audit.Options{})
	for b.Loop() {
		l.Record(sample)
	}
	b.ReportMetric(float64(l.Stats().Dropped)/float64(b.N), "dropped/op")
}

func BenchmarkTail(b *testing.B) {
	l, _ := open(b, audit.Options{QueueTimeout: time.Minute})
	for i := range 50_000 {
		r := sample
		r.Organization = fmt.Sprint("org-", i%1000)
		l.Record(r)
	}
	b.ResetTimer()
	for b.Loop() {
		tail(b, l, audit.Query{Organization: "org-5", Limit: 50})
	}
}

// TestReopen: after the file was renamed, records go to a new file, or to the old one if
// the new file cannot be opened.
func TestReopen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, moved := filepath.Join(dir, "sub", "audit.log"), filepath.Join(dir, "moved.log")
	l, err := audit.Open(audit.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	write := func(principal string) {
		t.Helper()
		l.Record(audit.Record{Principal: principal})
		if err := l.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	if err := os.Rename(path, moved); err != nil {
		t.Fatal(err)
	}
	write("two")
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	if err := l.Reopen(t.Context()); err == nil {
		t.Error("Reopen without the directory: got no error, want one")
	}
	write("three")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := l.Reopen(t.Context()); err != nil {
		t.Fatal(err)
	}
	write("four")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{moved: "one two three", path: "four"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(string(text)) {
			var r audit.Record
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			got = append(got, r.Principal)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %s", filepath.Base(file), got, want)
		}
	}
}
