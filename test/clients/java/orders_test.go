package java_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOrders combines the protocols: a Java producer writes records in Avro, whose schema
// is in the registry; an HTTP consumer receives and acknowledges them; a consumer group in
// Python reads the same records.
func TestOrders(t *testing.T) {
	t.Parallel()
	need(t, "platform")
	s := start(t)
	const count = 60
	s.call(http.MethodPut, "/admin/v2/persistent/public/default/orders/partitions", "3")
	s.call(http.MethodPut, "/admin/v2/persistent/public/default/orders/subscription/billing", `"earliest"`)
	out, all, err := run(t, compile(t, "platform", "programs"), nil, nil, "AvroOrders",
		s.settings("client.properties"), s.URL, s.Token, "orders", fmt.Sprint(count))
	if err != nil || !strings.Contains(out, "end") {
		t.Fatalf("producer failed: %v\n%s", err, all)
	}
	s.consumeOrders(count)
	s.consumeInPython(count)
}

// consumeOrders receives and acknowledges all orders over HTTP. Each has the id of its
// schema, and there are no further messages.
func (s *server) consumeOrders(count int) {
	s.Helper()
	const topic = "/admin/rest/topics/v1/public/default/orders/billing/messages"
	seen := make(map[byte]bool)
	for len(seen) < count {
		text := s.call(http.MethodPost, topic, `{"timeoutMillis": 10000, "maxMessages": 25}`)
		var batch struct {
			Messages []struct {
				ID       string `json:"messageId"`
				Key      string `json:"key"`
				Payload  string `json:"payload"`
				Encoding string `json:"encoding"`
			} `json:"messages"`
		}
		if err := json.Unmarshal([]byte(text), &batch); err != nil || len(batch.Messages) == 0 {
			s.Fatalf("after %d orders: got %s (error %v), want more", len(seen), text, err)
		}
		var ids []string
		for _, m := range batch.Messages {
			payload, err := base64.StdEncoding.DecodeString(m.Payload)
			if err != nil || len(payload) < 7 || payload[0] != 0 {
				s.Fatalf("got payload %q (error %v), want one that starts with a schema id", m.Payload, err)
			}
			order := payload[5] / 2 // Avro's encoding of a small number
			if seen[order] || m.Key != fmt.Sprintf("customer-%d", order%7) {
				s.Errorf("order %d was delivered twice or has the wrong key %q", order, m.Key)
			}
			seen[order] = true
			ids = append(ids, m.ID)
		}
		list, err := json.Marshal(map[string]any{"messageIds": ids})
		if err != nil {
			s.Fatal(err)
		}
		s.call(http.MethodPut, topic, string(list))
	}
	text := s.call(http.MethodGet, "/admin/v2/persistent/public/default/orders/partitioned-stats", "")
	var stats struct {
		Subscriptions map[string]struct {
			Backlog int `json:"msgBacklog"`
		} `json:"subscriptions"`
	}
	if err := json.Unmarshal([]byte(text), &stats); err != nil || len(stats.Subscriptions) != 1 ||
		stats.Subscriptions["billing"].Backlog != 0 {
		s.Errorf("got %s (error %v), want no backlog", text, err)
	}
}

// consumeInPython reads the same records with a consumer group of two members.
func (s *server) consumeInPython(count int) {
	s.Run("Python", func(t *testing.T) {
		if _, err := exec.LookPath("python3"); err != nil {
			t.Skip("NOT TESTED: python3 is not installed")
		}
		venv := filepath.Join(s.dir, "venv")
		if out, err := exec.CommandContext(t.Context(), "python3", "-m", "venv", venv).CombinedOutput(); err != nil {
			t.Skipf("NOT TESTED: python3 cannot create a virtual environment (Debian: python3-venv): %v\n%s", err, out)
		}
		python := filepath.Join(venv, "bin", "python")
		if out, err := exec.CommandContext(t.Context(), python, "-m", "pip", "install", "--quiet", "-r",
			"python/requirements.txt").CombinedOutput(); err != nil {
			t.Skipf("NOT TESTED: pip cannot download the client: %v\n%s", err, out)
		}
		out, err := exec.CommandContext(t.Context(), python, "python/orders.py", s.Kafka, s.URL, s.Token, "orders",
			fmt.Sprint(count)).CombinedOutput()
		var want []string
		for i := range count {
			want = append(want, fmt.Sprint(i))
		}
		if got := strings.TrimSpace(string(out)); err != nil || got != strings.Join(want, " ") {
			t.Errorf("got %s (error %v), want the orders 0 to %d", got, err, count-1)
		}
		text := s.call(http.MethodGet, "/rest-stream/admin/v1/groups/warehouse", "")
		if !strings.Contains(text, `"lag":0`) {
			t.Errorf("group: got %s, want no lag", text)
		}
	})
}
