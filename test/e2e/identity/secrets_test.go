package identity_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"freshet/test/testserver"
)

// known holds all secrets of the tests. The tested property: the server never shows a client
// secret, a token or a private key except to the caller that it belongs to. Every test of
// this package registers the secrets that it gets (keep). Every response that must not
// contain secrets is searched for all of them; in the end so are the log at level debug, the
// audit trail, the metrics and the files of etcd.

var known finder

// finder searches for many texts in one pass. mu protects its tables.
type finder struct {
	mu     sync.RWMutex
	starts [1 << 16]bool                 // by the first two bytes
	forms  map[[8]byte]map[string]string // by the first eight bytes: an encoded secret and its description
}

func (f *finder) add(form, what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.forms == nil {
		f.forms = map[[8]byte]map[string]string{}
	}
	start := [8]byte([]byte(form[:8]))
	if f.forms[start] == nil {
		f.forms[start] = map[string]string{}
	}
	f.forms[start][form] = what
	f.starts[int(form[0])<<8|int(form[1])] = true
}

func (f *finder) find(text []byte) []string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	var found []string
	for i := 0; i+8 <= len(text); i++ {
		if !f.starts[int(text[i])<<8|int(text[i+1])] {
			continue
		}
		for form, what := range f.forms[[8]byte(text[i:i+8])] {
			if bytes.HasPrefix(text[i:], []byte(form)) && !slices.Contains(found, what) {
				found = append(found, what)
			}
		}
	}
	return found
}

// registerSecret registers a secret in every encoding in which it might be printed.
func registerSecret(what, secret string) {
	if len(secret) < 16 {
		panic("secret of " + what + " is too short for the search: " + secret)
	}
	known.add(secret, what)
	known.add(base64.StdEncoding.EncodeToString([]byte(secret)), what)
	known.add(url.QueryEscape(secret), what)
	known.add(strings.Trim(fmt.Sprintf("%q", secret), `"`), what)
}

// leaks returns the descriptions of the secrets in a text.
func leaks(text []byte) []string { return known.find(text) }

// TestSecretsAreFound checks that the search finds secrets.
func TestSecretsAreFound(t *testing.T) {
	t.Parallel()
	var f finder
	f.add("0123456789abcdef", "a secret")
	f.add("0123456789abcdeg", "another")
	for text, want := range map[string]string{
		"": "", "0123456789abcde": "", "x0123456789abcdefx": "a secret", "00123456789abcdeg": "another",
		"0123456789abcdef0123456789abcdeg": "a secret another",
	} {
		if got := strings.Join(f.find([]byte(text)), " "); got != want {
			t.Errorf("in %q: got %q, want %q", text, got, want)
		}
	}
}

func metricsOf(ctx context.Context, s *testserver.Server) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Ops+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

// withoutGaps shortens sequences of zeros, which make up most of etcd's files.
func withoutGaps(text []byte) []byte {
	gap := make([]byte, 64)
	parts := bytes.Split(text, gap)
	kept := parts[:0]
	for _, part := range parts {
		if len(part) > 0 {
			kept = append(kept, part)
		}
	}
	return bytes.Join(kept, gap[:1])
}

// searchEverything searches all files of a stopped server for secrets.
func searchEverything(s *testserver.Server, metrics []byte) error {
	sources := map[string][]byte{"the metrics": metrics}
	read := func(name, path string) error {
		text, err := os.ReadFile(path)
		sources[name] = withoutGaps(text)
		return err
	}
	err := errors.Join(
		read("the log", logOf(s)),
		read("the audit trail", filepath.Join(s.DataDir, "audit.log")),
		filepath.WalkDir(filepath.Join(s.DataDir, "etcd"), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			return read("etcd's "+entry.Name(), path)
		}))
	for name, text := range sources {
		if len(text) == 0 && !strings.HasPrefix(name, "etcd's") {
			err = errors.Join(err, fmt.Errorf("%s is empty, so searching it proves nothing", name))
		}
		for _, what := range leaks(text) {
			err = errors.Join(err, fmt.Errorf("%s contains %s", name, what))
		}
	}
	return err
}
