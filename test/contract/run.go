package contract

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Target is a server under test.
type Target struct {
	BaseURL string
	// Token is the bearer token of requests that set no other credentials.
	Token string
	// Client makes the requests; nil uses a client that neither follows redirects nor
	// requests compression.
	Client *http.Client
	// Vars are additional variables for every conversation.
	Vars Vars
	// Observe is called with every response, for example to check it against an OpenAPI
	// document; an error fails the step.
	Observe func(*http.Request, *http.Response, []byte) error
}

// Folder runs every conversation of a folder, in parallel.
func Folder(t *testing.T, target Target, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations in %s (%v)", folder, err)
	}
	for _, file := range files {
		c, err := Load(file)
		if err != nil {
			t.Error(err)
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			c.Run(t, target)
		})
	}
}

// Run runs the conversation against the target, once for each case.
func (c *Conversation) Run(t *testing.T, target Target) {
	t.Helper()
	if target.Client == nil {
		target.Client = defaultClient
	}
	if len(c.Cases) == 0 {
		c.run(t, target, nil)
		return
	}
	for _, vars := range c.Cases {
		t.Run(plain(vars["case"]), func(t *testing.T) {
			t.Parallel()
			c.run(t, target, vars)
		})
	}
}

var defaultClient = &http.Client{
	Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 32},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// runID is the same for all conversations of a process.
var runID = randomID()

func randomID() string {
	var raw [4]byte
	_, _ = rand.Read(raw[:]) // never fails: crypto/rand aborts the process instead
	return hex.EncodeToString(raw[:])
}

func (c *Conversation) run(t *testing.T, target Target, row map[string]any) {
	t.Helper()
	base, err := url.Parse(target.BaseURL)
	if err != nil {
		t.Fatal(err)
	}
	vars := Vars{
		"base": target.BaseURL, "host": base.Host, "token": target.Token, "run": runID,
		"ns": "org-" + randomID(),
	}
	maps.Copy(vars, target.Vars)
	for name, value := range row {
		text, isText := value.(string)
		if isText {
			if value, err = vars.expand(text); err != nil {
				t.Fatalf("case variable %s: %v", name, err)
			}
		}
		vars[name] = value
	}
	if err := c.execute(t.Context(), target, vars); err != nil {
		t.Fatal(err)
	}
}

// execute runs the steps, and repeats from an earlier step where @again requires it.
func (c *Conversation) execute(ctx context.Context, target Target, vars Vars) error {
	before := make([]Vars, len(c.Steps)) // the variables before each step
	deadlines := make([]time.Time, len(c.Steps))
	for i := 0; i < len(c.Steps); i++ {
		step := &c.Steps[i]
		before[i] = vars.clone()
		if deadlines[i].IsZero() {
			deadlines[i] = time.Now().Add(step.RepeatTimeout)
		}
		err := step.execute(ctx, target, vars)
		if err == nil {
			continue
		}
		if step.RepeatFrom == "" || time.Now().After(deadlines[i]) || ctx.Err() != nil {
			return fmt.Errorf("step %q: %w", step.Name, err)
		}
		back := c.find(step.RepeatFrom)
		vars = before[back]
		i = back - 1
	}
	return nil
}

// pause is the interval between attempts of a step with @retry.
const pause = 50 * time.Millisecond

// execute makes one request, repeatedly if the step has @retry. It returns nil only if the
// response was as expected, and then adds the captured values to vars.
func (s *Step) execute(ctx context.Context, target Target, vars Vars) error {
	deadline := time.Now().Add(s.Retry)
	for {
		trial := vars.clone()
		err := s.attempt(ctx, target, trial)
		if err == nil {
			maps.Copy(vars, trial)
			return nil
		}
		if time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

func (s *Step) attempt(ctx context.Context, target Target, vars Vars) error {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	request, sent, err := s.request(ctx, target, vars)
	if err != nil {
		return err
	}
	response, err := target.Client.Do(request)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // already read
	if err != nil {
		return fmt.Errorf("reading the response of %s: %w", request.URL, err)
	}
	if target.Observe != nil {
		if err := target.Observe(request, response, body); err != nil {
			return err
		}
	}
	if problems := s.Want.check(response, body, vars); len(problems) > 0 {
		return fmt.Errorf("response is not as expected:\n  %s\n%s", strings.Join(problems, "\n  "),
			transcript(request, sent, response, body))
	}
	if s.Want.Save != "" {
		vars[s.Want.Save] = string(body)
	}
	return nil
}

func (s *Step) request(ctx context.Context, target Target, vars Vars) (*http.Request, string, error) {
	path, err := vars.expand(s.Path)
	if err != nil {
		return nil, "", err
	}
	body, err := vars.expand(s.Body)
	if err != nil {
		return nil, "", err
	}
	if s.Raw != "" {
		saved, ok := vars[s.Raw].(string)
		if !ok {
			return nil, "", fmt.Errorf("no body was saved as %s", s.Raw)
		}
		body = saved
	}
	request, err := http.NewRequestWithContext(ctx, s.Method, target.BaseURL+path, strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	request.Header.Set("Authorization", "Bearer "+target.Token)
	request.Header.Set("User-Agent", "freshet-contract")
	seen := map[string]bool{}
	for _, h := range s.Headers {
		value, err := vars.expand(h.Value)
		if err != nil {
			return nil, "", err
		}
		switch name := http.CanonicalHeaderKey(h.Name); {
		case name == "Host":
			request.Host = value
		case name == "Authorization" && value == "none":
			request.Header.Del(name)
		case seen[name]:
			request.Header[name] = append(request.Header[name], value)
		default:
			request.Header[name] = []string{value}
			seen[name] = true
		}
	}
	return request, body, nil
}

const maxTranscript = 6_000

func transcript(request *http.Request, sent string, response *http.Response, body []byte) string {
	var out strings.Builder
	fmt.Fprintf(&out, "> %s %s\n", request.Method, request.URL.RequestURI())
	if sent != "" {
		fmt.Fprintf(&out, "> %s\n", clip(sent))
	}
	fmt.Fprintf(&out, "< %s\n", response.Status)
	for name, values := range response.Header {
		fmt.Fprintf(&out, "< %s: %s\n", name, strings.Join(values, ", "))
	}
	fmt.Fprintf(&out, "< %s", clip(string(body)))
	return out.String()
}

func clip(text string) string {
	if len(text) > maxTranscript {
		text = text[:maxTranscript] + "…"
	}
	return strings.ToValidUTF8(text, "·")
}
