package schemaimport_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"freshet.dev/client"
	"freshet.dev/client/schemas"
	"freshet/internal/cli/schemaimport"
	"freshet/test/testserver"
)

// server is the real server into which the tests import.
var server *testserver.Server

func TestMain(m *testing.M) {
	var binary string
	testserver.MainServer(m, &binary, &server, testserver.Options{})
}

func target(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{BaseURL: server.URL, TokenSource: client.StaticToken(server.Token)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// source returns a Source for an address.
func source(t *testing.T, config schemaimport.SourceConfig) *schemaimport.Source {
	t.Helper()
	s, err := schemaimport.NewSource(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// stored is a version of the peer.
type stored struct {
	ID         int                 `json:"id"`
	Subject    string              `json:"subject"`
	Version    int                 `json:"version"`
	Type       string              `json:"schemaType,omitempty"`
	References []schemas.Reference `json:"references,omitempty"`
	Schema     string              `json:"schema"`
	RuleSet    json.RawMessage     `json:"ruleSet,omitempty"`

	deleted bool
}

// peer responds as Confluent Schema Registry 7 does, in what Freshet's registry cannot: a global
// level, subjects without a level, modes of subjects, contexts, and data contracts.
type peer struct {
	global   string
	levels   map[string]string
	modes    map[string]string
	maxID    int
	user     string // Basic authentication, user:password; none if empty
	mu       sync.Mutex
	versions []stored
}

// change changes the versions between two imports.
func (p *peer) change(do func(versions []stored) []stored) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.versions = do(p.versions)
}

// start serves the peer until the test ends, and returns its URL.
func (p *peer) start(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /subjects", p.subjects)
	mux.HandleFunc("GET /subjects/{subject}/versions", p.list)
	mux.HandleFunc("GET /subjects/{subject}/versions/{version}", p.version)
	mux.HandleFunc("GET /schemas/ids/{id}", func(w http.ResponseWriter, r *http.Request) {
		reply(w, 200, map[string]any{"schema": `"string"`, "maxId": p.maxID})
	})
	mux.HandleFunc("GET /config", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 200, map[string]any{"compatibilityLevel": p.global})
	})
	mux.HandleFunc("GET /config/{subject}", func(w http.ResponseWriter, r *http.Request) {
		value(w, p.levels[r.PathValue("subject")], "compatibilityLevel", 40408)
	})
	mux.HandleFunc("GET /mode/{subject}", func(w http.ResponseWriter, r *http.Request) {
		value(w, p.modes[r.PathValue("subject")], "mode", 40409)
	})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); p.user != "" && user+":"+password != p.user {
			reply(w, 401, map[string]any{"error_code": 40101, "message": "Unauthorized"})
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func (p *peer) subjects(w http.ResponseWriter, r *http.Request) {
	names := []string{}
	for _, v := range p.visible(r) {
		if !slices.Contains(names, v.Subject) && strings.HasPrefix(v.Subject, r.URL.Query().Get("subjectPrefix")) {
			names = append(names, v.Subject)
		}
	}
	reply(w, 200, names)
}

func (p *peer) list(w http.ResponseWriter, r *http.Request) {
	var numbers []int
	for _, v := range p.visible(r) {
		if v.Subject == r.PathValue("subject") {
			numbers = append(numbers, v.Version)
		}
	}
	if len(numbers) == 0 {
		reply(w, 404, map[string]any{"error_code": 40401, "message": "Subject not found."})
		return
	}
	reply(w, 200, numbers)
}

func (p *peer) version(w http.ResponseWriter, r *http.Request) {
	var found *stored
	for _, v := range p.visible(r) {
		if v.Subject == r.PathValue("subject") &&
			(strconv.Itoa(v.Version) == r.PathValue("version") || r.PathValue("version") == "latest") {
			found = &v
		}
	}
	if found == nil {
		reply(w, 404, map[string]any{"error_code": 40402, "message": "Version not found."})
		return
	}
	reply(w, 200, found)
}

func (p *peer) visible(r *http.Request) []stored {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.versions), func(v stored) bool {
		return v.deleted && r.URL.Query().Get("deleted") != "true"
	})
}

func value(w http.ResponseWriter, value, name string, missing int) {
	if value == "" {
		reply(w, 404, map[string]any{"error_code": missing, "message": "not configured"})
		return
	}
	reply(w, 200, map[string]any{name: value})
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/vnd.schemaregistry.v1+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
