package ensemblecmd_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestStepDown(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"etcd":true,"streams":4}`:  "Other members lead etcd and 4 streams of the log, which b led.",
		`{"etcd":true,"streams":0}`:  "Another member leads etcd, which b led.",
		`{"etcd":false,"streams":1}`: "Other members lead one stream of the log, which b led.",
		`{"etcd":false,"streams":0}`: "Member b leads nothing; nothing was changed.",
	} {
		request := ""
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			request = r.Method + " " + r.URL.Path
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body)
		}))
		out, err := runAt(t, server.URL, "", "step-down", "b")
		if err != nil || strings.TrimSpace(out) != want || request != "POST /system/v1alpha1/members/b/step-down" {
			t.Errorf("%s: got %q and error %v after %s, want %q", body, out, err, request, want)
		}
		out, err = runAt(t, server.URL, "", "step-down", "b", "-o", "json")
		if compact := strings.Join(strings.Fields(out), ""); err != nil || compact != body {
			t.Errorf("-o json: got %s and error %v, want %s", compact, err, body)
		}
		server.Close()
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w,
			`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"the member is not live","code":409}`)
	}))
	defer server.Close()
	if _, err := runAt(t, server.URL, "", "step-down", "c"); err == nil || !strings.Contains(err.Error(), "not live") {
		t.Errorf("lost member: got error %v, want that it is not live", err)
	}
	if _, err := runAt(t, server.URL, "", "step-down"); err == nil ||
		!strings.Contains(err.Error(), "name of the member") {
		t.Errorf("without a name: got error %v, want the missing argument named", err)
	}
}
