package identity_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// watching is an open watch.
type watching struct {
	w      *world
	lines  *bufio.Scanner
	status int
}

// event is the part of a watch event that the tests check.
type event struct {
	Type   string
	Object struct {
		Kind     string
		Code     int
		Metadata struct{ Name, ResourceVersion string }
	}
}

// watch watches a collection until the end of the test.
func (w *world) watch(path, token string) *watching {
	w.Helper()
	if token == "" {
		token = w.server.Token
	}
	request, err := http.NewRequestWithContext(w.Context(), http.MethodGet,
		w.server.URL+api+"/namespaces/"+w.org+"/"+path+"?watch=true&timeoutSeconds=20", http.NoBody)
	if err != nil {
		w.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = response.Body.Close() })
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 4<<20)
	return &watching{w: w, lines: lines, status: response.StatusCode}
}

// next waits for an event and returns an empty one at the end of the watch.
func (s *watching) next() event {
	s.w.Helper()
	var e event
	if !s.lines.Scan() {
		return e
	}
	for _, leak := range leaks(s.lines.Bytes()) {
		s.w.Errorf("watch event contains %s", leak)
	}
	if err := json.Unmarshal(s.lines.Bytes(), &e); err != nil {
		s.w.Fatalf("%v in %.200s", err, s.lines.Bytes())
	}
	return e
}

func writeFile(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
