// Package faults damages files of the real binary's data directory and fills its disk.
package faults

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"freshet/test/stamp"
	"freshet/test/testserver"
)

const (
	kept     = "kept"
	topic    = "/admin/rest/topics/v1/public/default/" + kept
	peek     = "/admin/v2/persistent/public/default/" + kept + "/subscription/reader/position/"
	messages = 20
)

var binary string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "freshet-faults-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	if binary, err = testserver.Binary(context.Background(), dir); err != nil {
		panic(err)
	}
	return m.Run()
}

// start runs a server on a data directory, ready or not, with its log in a folder that is
// not affected by faults.
func start(t *testing.T, data string, args ...string) (*testserver.Server, error) {
	t.Helper()
	s, err := testserver.Start(t.Context(), binary, t.TempDir(),
		testserver.Options{DataDir: data, AllowUnready: true, Args: args})
	if err == nil {
		t.Cleanup(s.Kill)
	}
	return s, err
}

// call makes a request as the administrator and returns the status and the body.
func call(t *testing.T, s *testserver.Server, method, path, body string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.Token)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
		if _, err := stamp.Parse([]byte(body)); err == nil {
			request.Header.Set("Content-Type", "application/octet-stream")
		}
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", method, path, err, s.Log())
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// must is a call that must succeed.
func must(t *testing.T, s *testserver.Server, method, path, body string) string {
	t.Helper()
	status, text := call(t, s, method, path, body)
	if status/100 != 2 {
		t.Fatalf("%s %s: got %d %s, want success", method, path, status, text)
	}
	return text
}

// payload returns the content of message i of the topic kept.
func payload(i int) string { return string(stamp.Make(kept, "fill", i, 500)) }

// foreign reports whether a message that was delivered for a topic belongs to another topic.
func foreign(text, topic string) bool {
	_, err := stamp.Check([]byte(text), topic, stamp.AnyPartition)
	return errors.Is(err, stamp.ErrForeign)
}

// fill creates a topic with messages, a subscription, a schema and an account.
func fill(t *testing.T, s *testserver.Server) {
	t.Helper()
	must(t, s, http.MethodPut, "/admin/v2/persistent/public/default/kept", "")
	must(t, s, http.MethodPut, "/admin/v2/persistent/public/default/kept/subscription/reader", "")
	for i := range messages {
		must(t, s, http.MethodPost, topic+"/message", payload(i))
	}
	must(t, s, http.MethodPost, "/subjects/kept/versions", `{"schema":"\"string\""}`)
	must(t, s, http.MethodPost, "/apis/cloud.vendor.io/v1alpha1/namespaces/default/serviceaccounts",
		`{"metadata":{"name":"kept"}}`)
}
