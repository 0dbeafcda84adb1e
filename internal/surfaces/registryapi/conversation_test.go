package registryapi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"freshet/internal/registry/schemas"
	"freshet/test/tally"
)

// A conversation is a txtar file. Its comment may have lines
//
//	name = text
//
// which define that {{name}} in any exchange is replaced with the text as a JSON string.
// Each file of the archive is one exchange: a request, a line of dashes and the expected
// response. The request has a line with method and path, headers, and after an empty
// line a body. Without an Authorization header it uses the administrator's token. The
// response has a status, required headers, and after an empty line a body: JSON that must
// be equal, where the string <any> matches anything and <like x> a string that contains
// x; or, after "raw:", a text. Every conversation starts with an empty registry.

func TestConversations(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d conversations in testdata, error %v, want at least one", len(files), err)
	}
	for _, file := range files {
		if filepath.Base(file) == attackFile {
			continue // TestAttackReferences
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := newServer(t, schemas.Options{FixedMode: strings.Contains(file, "fixedmode")})
			converse(t, s.URL, archive)
		})
	}
}

// attackFile has the exchanges of callers that refer to subjects that they may not read.
const attackFile = "references_access.txtar"

// TestAttackReferences counts the exchanges of attackFile that succeed.
func TestAttackReferences(t *testing.T) {
	t.Parallel()
	archive, err := txtar.ParseFile(filepath.Join("testdata", attackFile))
	if err != nil {
		t.Fatal(err)
	}
	attempts, successes := 0, 0
	s := newServer(t, schemas.Options{})
	words := definitions(t, string(archive.Comment))
	for i, f := range archive.Files {
		e, err := parseExchange(substitute(string(f.Data), words))
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		attack := e.status/100 == 4
		if attack {
			attempts++
		}
		if !t.Run(fmt.Sprintf("%02d %s", i+1, f.Name), func(t *testing.T) { e.run(t, s.URL) }) && attack {
			successes++
		}
	}
	tally.Attack(t, "references in the registry to subjects that the caller may not read", attempts, successes)
}

func converse(t *testing.T, base string, archive *txtar.Archive) {
	t.Helper()
	words := definitions(t, string(archive.Comment))
	for i, f := range archive.Files {
		e, err := parseExchange(substitute(string(f.Data), words))
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		if !t.Run(fmt.Sprintf("%02d %s", i+1, f.Name), func(t *testing.T) { e.run(t, base) }) {
			t.FailNow() // later exchanges depend on it
		}
	}
}

func definitions(t *testing.T, head string) map[string]string {
	t.Helper()
	words := map[string]string{}
	for line := range strings.Lines(head) {
		if name, text, ok := strings.Cut(strings.TrimSpace(line), " = "); ok && !strings.HasPrefix(line, "#") {
			words[name] = strings.ReplaceAll(text, `\n`, "\n")
		}
	}
	return words
}

var placeholder = regexp.MustCompile(`\{\{([a-zA-Z0-9_]+)(?::([0-9]+))?\}\}`)

// substitute replaces placeholders: {{name}} with the defined text as a JSON string,
// {{x:400}} with x repeated 400 times.
func substitute(text string, words map[string]string) string {
	return placeholder.ReplaceAllStringFunc(text, func(m string) string {
		parts := placeholder.FindStringSubmatch(m)
		if parts[2] != "" {
			n, _ := strconv.Atoi(parts[2])
			return strings.Repeat(parts[1], n)
		}
		quoted, _ := json.Marshal(words[parts[1]])
		return string(quoted)
	})
}

type exchange struct {
	method, path string
	header       http.Header
	body         string

	status     int
	wantHeader http.Header
	want       string
}

func parseExchange(text string) (*exchange, error) {
	request, reply, ok := strings.Cut(text, "\n---\n")
	if !ok {
		return nil, errors.New("exchange has no line of dashes")
	}
	e := &exchange{}
	first, header, body, err := parsePart(request)
	if err != nil {
		return nil, err
	}
	e.header, e.body = header, body
	if e.method, e.path, ok = strings.Cut(first, " "); !ok {
		return nil, fmt.Errorf("request line %q has no path", first)
	}
	first, e.wantHeader, e.want, err = parsePart(reply)
	if err != nil {
		return nil, err
	}
	e.status, err = strconv.Atoi(first)
	return e, err
}

func parsePart(text string) (first string, header http.Header, body string, err error) {
	head, body, _ := strings.Cut(strings.TrimLeft(text, "\n"), "\n\n")
	lines := strings.Split(strings.TrimSpace(head), "\n")
	header = http.Header{}
	for _, line := range lines[1:] {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return "", nil, "", fmt.Errorf("header line %q has no colon", line)
		}
		header.Add(name, strings.TrimSpace(value))
	}
	return lines[0], header, strings.TrimSpace(body), nil
}

func (e *exchange) run(t *testing.T, base string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), e.method, base+e.path, strings.NewReader(e.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer admin")
	for name, values := range e.header {
		req.Header[name] = values
	}
	if req.Header.Get("Authorization") == "none" {
		req.Header.Del("Authorization")
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != e.status {
		t.Errorf("%s %s: got status %d, want %d\n%s", e.method, e.path, res.StatusCode, e.status, clip(body))
	}
	for name, values := range e.wantHeader {
		if got := res.Header.Get(name); got != values[0] && (values[0] != "<any>" || got == "") {
			t.Errorf("%s %s: header %s: got %q, want %q", e.method, e.path, name, got, values[0])
		}
	}
	e.checkBody(t, body)
	validate(t, req, e.body, res, body)
}

func (e *exchange) checkBody(t *testing.T, body []byte) {
	t.Helper()
	if text, ok := strings.CutPrefix(e.want, "raw:"); ok {
		if got := strings.TrimSpace(string(body)); got != strings.TrimSpace(text) {
			t.Errorf("%s %s: got body\n%s\nwant\n%s", e.method, e.path, clip(body), text)
		}
		return
	}
	if e.want == "" {
		if len(bytes.TrimSpace(body)) != 0 {
			t.Errorf("%s %s: got body %s, want none", e.method, e.path, clip(body))
		}
		return
	}
	var want, got any
	if err := json.Unmarshal([]byte(e.want), &want); err != nil {
		t.Fatalf("decoding the expected body %s: %v", e.want, err)
	}
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatalf("%s %s: decoding the body %s: %v", e.method, e.path, clip(body), err)
	}
	if !matches(want, got) {
		t.Errorf("%s %s: got body\n%s\nwant\n%s", e.method, e.path, clip(body), e.want)
	}
}

func matches(want, got any) bool {
	switch w := want.(type) {
	case string:
		if w == "<any>" {
			return true
		}
		if part, ok := strings.CutPrefix(w, "<like "); ok {
			text, isText := got.(string)
			return isText && strings.Contains(text, strings.TrimSuffix(part, ">"))
		}
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for k, v := range w {
			if other, ok := g[k]; !ok || !matches(v, other) {
				return false
			}
		}
		return true
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for i := range w {
			if !matches(w[i], g[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(want, got)
}

func clip(b []byte) string {
	if len(b) > 2000 {
		return string(b[:2000]) + "..."
	}
	return string(b)
}
