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
	"strings"
	"sync"

	"freshet/test/testserver"
)

// The property: nothing that the server says or keeps ever shows a client
// secret, a token or a private key to anybody but the one it is for. Every test
// of this package adds the secrets it comes by (keep); every answer of the
// server that is not known to hold one is searched for all of them, and so are
// in the end the log at its most talkative, the audit trail, the metrics and
// the files of etcd.

var known = struct {
	sync.Mutex
	forms map[string]string // the secret in some form, and what it is
}{forms: map[string]string{}}

// keep remembers a secret in every form it might be printed in.
func keep(what, secret string) {
	if len(secret) < 16 {
		panic("a secret of " + what + " is too short to be found: " + secret)
	}
	known.Lock()
	defer known.Unlock()
	known.forms[secret] = what
	known.forms[base64.StdEncoding.EncodeToString([]byte(secret))] = what + " in base64"
	if escaped := url.QueryEscape(secret); escaped != secret {
		known.forms[escaped] = what + " in a URL"
	}
	if escaped := fmt.Sprintf("%q", secret); escaped != `"`+secret+`"` {
		known.forms[strings.Trim(escaped, `"`)] = what + " quoted"
	}
}

// leaks names the secrets in a text.
func leaks(text []byte) []string {
	known.Lock()
	defer known.Unlock()
	var found []string
	for form, what := range known.forms {
		if bytes.Contains(text, []byte(form)) {
			found = append(found, what)
		}
	}
	return found
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

// withoutGaps shortens runs of zeros, of which etcd's files mostly consist.
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

// searchEverything looks at all that a stopped server has left behind.
func searchEverything(s *testserver.Server, metrics []byte) error {
	places := map[string][]byte{"the metrics": metrics}
	read := func(name, path string) error {
		text, err := os.ReadFile(path)
		places[name] = withoutGaps(text)
		return err
	}
	err := errors.Join(
		read("the log", logOf(s)),
		read("the audit trail", filepath.Join(s.DataDir, "audit.log")),
		read("the kubeconfig", filepath.Join(s.DataDir, "kubeconfig")),
		filepath.WalkDir(filepath.Join(s.DataDir, "etcd"), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			return read("etcd's "+entry.Name(), path)
		}))
	for name, text := range places {
		if len(text) == 0 && !strings.HasPrefix(name, "etcd's") {
			err = errors.Join(err, fmt.Errorf("%s is empty, so the search means nothing", name))
		}
		for _, what := range leaks(text) {
			err = errors.Join(err, fmt.Errorf("%s holds %s", name, what))
		}
	}
	return err
}
