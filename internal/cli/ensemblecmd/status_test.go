package ensemblecmd_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// statusOf runs "ensemble status" against a server that returns a status.
func statusOf(t *testing.T, body string, args ...string) (string, error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}))
	defer server.Close()
	return runAt(t, server.URL, "", append([]string{"status"}, args...)...)
}

// TestStatusOfReplicas: the status names missing replicas, damaged files and clusters that a member
// cannot serve, and only with --all what is good.
func TestStatusOfReplicas(t *testing.T) {
	t.Parallel()
	ago := time.Now().Add(-72 * time.Hour).Format(time.RFC3339)
	const member = `{"name":"%s","node":1,"internal":"h:1","live":true,"ready":true%s}`
	const stream = `{"name":"S_u_%d","cluster":"acme/prod","part":"log of shard %[1]d","want":3,"leader":"a",
		"replicas":[{"member":"a","current":true,"lag":0},{"member":"b","current":%t,"lag":7%s}]}`
	status := func(more, ofMember string, streams ...string) string {
		return fmt.Sprintf(`{"self":"a","observed":%q,"members":[%s],"streams":[%s]%s}`, ago,
			fmt.Sprintf(member, "b", ofMember), strings.Join(streams, ","), more)
	}
	healthy := fmt.Sprintf(stream, 0, true, "")
	verified := fmt.Sprintf(`,"parts":[{"name":"shard acme/prod/0","verified":%q}]`, ago)
	for _, tc := range []struct {
		name, body string
		args       []string
		has, not   []string
		fails      bool
	}{
		{
			name: "good", body: status("", verified, healthy),
			has: []string{"All 1 streams have 3 current replicas; all files were last verified 3d ago."},
			not: []string{"log of shard 0", "shard acme/prod/0"},
		},
		{
			name: "all", body: status("", verified, healthy), args: []string{"--all"},
			has: []string{"log of shard 0", "shard acme/prod/0", "3d"},
		},
		{
			name: "missing", fails: true,
			body: status("", verified, healthy, fmt.Sprintf(stream, 1, false, `,"problem":"raft: snapshot corrupt"`)),
			has: []string{
				"log of shard 1", "1 of 3", "b: raft: snapshot corrupt", "1 of 2 streams have all 3 replicas",
			},
			not: []string{"log of shard 0"},
		},
		{
			name: "damaged", fails: true,
			body: status("", fmt.Sprintf(`,"quarantineBytes":2000000,"parts":[{"name":"shard acme/prod/0",`+
				`"damaged":%q,"file":"000007.sst","problem":"checksum mismatch"}]`, ago), healthy),
			has: []string{"000007.sst: checksum mismatch", "1 parts are damaged", "kept for a day"},
		},
		{
			name: "failing", fails: true, body: status("", `,"failing":{"acme/prod":"journal has no record"}`, healthy),
			has: []string{"Problem: cluster acme/prod on member b: journal has no record"},
		},
		{
			name: "json", body: status(`,"shards":[{"number":4}]`, verified, healthy), args: []string{"-o", "json"},
			has: []string{`"part": "log of shard 0"`, `"number": 4`, `"verified"`},
		},
	} {
		out, err := statusOf(t, tc.body, tc.args...)
		if (err != nil) != tc.fails {
			t.Errorf("%s: got error %v\n%s", tc.name, err, out)
		}
		for _, text := range tc.has {
			if !strings.Contains(out, text) {
				t.Errorf("%s: got\n%s\nwant %q", tc.name, out, text)
			}
		}
		for _, text := range tc.not {
			if strings.Contains(out, text) {
				t.Errorf("%s: got\n%s\nwant no %q", tc.name, out, text)
			}
		}
	}
}
