package damage

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"freshet/test/ensemble/chaos"
)

// watch polls what the ensemble reports about a member: /readyz of the member, and the status that
// `freshet ensemble status -o json` prints, at another member. mu protects the texts.
type watch struct {
	stop    func()
	damages map[string]int // by part, when polling began; nil if nothing was verified yet

	mu   sync.Mutex
	said []string
	seen map[string]bool
}

const (
	watchEvery  = 500 * time.Millisecond
	watchTime   = 3 * time.Second
	maxSaid     = 30
	maxSaidText = 400
)

// startWatch begins to poll. The token works at every member.
func startWatch(ctx context.Context, victim, other *chaos.Member, token string) *watch {
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{seen: map[string]bool{}}
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			w.readyz(ctx, victim)
			w.status(ctx, other, victim.Name, token)
			select {
			case <-ctx.Done():
			case <-time.After(watchEvery):
			}
		}
	})
	w.stop = func() { cancel(); running.Wait() }
	return w
}

// finish stops polling and returns the different texts, in the order in which they appeared.
func (w *watch) finish() []string {
	w.stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said
}

func (w *watch) add(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(text) > maxSaidText {
		text = text[:maxSaidText] + "…"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.seen[text] && len(w.said) < maxSaid {
		w.seen[text] = true
		w.said = append(w.said, text)
	}
}

func get(ctx context.Context, url, token string) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, watchTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return response.StatusCode, body, err
}

// readyz records the status of /readyz and the checks that failed.
func (w *watch) readyz(ctx context.Context, m *chaos.Member) {
	status, body, err := get(ctx, m.URL+"/readyz?verbose", "")
	if err != nil {
		return // the member does not run
	}
	var failed []string
	for line := range strings.Lines(string(body)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "[+]") {
			failed = append(failed, line)
		}
	}
	w.add("readyz %d: %s", status, strings.Join(failed, "; "))
}

// status records the state and the problems of a member.
func (w *watch) status(ctx context.Context, at *chaos.Member, name, token string) {
	code, body, err := get(ctx, at.URL+"/system/v1alpha1/members", token)
	if err != nil {
		return
	}
	var s chaos.Status
	if code != http.StatusOK || json.Unmarshal(body, &s) != nil {
		w.add("status %d", code)
		return
	}
	for _, m := range s.Members {
		if m.Name == name {
			w.add("status: live %t, ready %t %s", m.Live, m.Ready, m.Problem)
		}
	}
	for _, shard := range s.Shards {
		if shard.Problem != "" {
			w.add("status of shard %d: %s", shard.Number, shard.Problem)
		}
		for _, c := range shard.Copies {
			if c.Problem != "" {
				w.add("status of shard %d at %s: %s", shard.Number, c.Member, c.Problem)
			}
		}
	}
	for _, text := range s.Damage() {
		w.add("status: %s", text)
	}
	w.countDamages(&s, name)
}

// countDamages records damage that was found and healed between two polls.
func (w *watch) countDamages(s *chaos.Status, name string) {
	counts := map[string]int{}
	for _, m := range s.Members {
		if m.Name != name {
			continue
		}
		for _, part := range m.Parts {
			counts[part.Name] = part.Damages
			if w.damages != nil && part.Damages > w.damages[part.Name] {
				w.add("status: %s was damaged: %s: %s", part.Name, part.File, part.Problem)
			}
		}
	}
	if w.damages == nil && len(counts) > 0 {
		w.damages = counts
	}
}

// mentionsDamage finds texts that report damage, not only that a member is away.
var mentionsDamage = regexp.MustCompile(`(?i)damag|degrad|corrupt|checksum|loglost|accept-loss|not as they were`)

func reported(texts ...string) bool {
	for _, text := range texts {
		if mentionsDamage.MatchString(text) {
			return true
		}
	}
	return false
}
