package ops

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"freshet/test/testserver"
)

const (
	adminPath = "/admin/v2/persistent/public/default/"
	topicPath = "/admin/rest/topics/v1/public/default/"
)

// traffic produces five messages of ten bytes, receives three, acknowledges one, and rejects
// one, which becomes a dead letter.
func traffic(t *testing.T, server *testserver.Server) {
	t.Helper()
	must(t, server, 204, "PUT", adminPath+"orders/subscription/s",
		`{"position": "earliest", "deadLetterPolicy": {"maxRedeliverCount": 0}}`)
	for range 5 {
		must(t, server, 201, "POST", topicPath+"orders/message", `"12345678"`)
	}
	must(t, server, 404, "POST", topicPath+"orders/nobody/message", "")
	var batch struct {
		Messages []struct {
			ID json.RawMessage `json:"messageId"`
		} `json:"messages"`
	}
	text := must(t, server, 200, "POST", topicPath+"orders/s/messages", `{"maxMessages": 3, "timeoutMillis": 5000}`)
	if err := json.Unmarshal([]byte(text), &batch); err != nil || len(batch.Messages) != 3 {
		t.Fatalf("got %s, %v, want three messages", text, err)
	}
	must(t, server, 204, "PUT", topicPath+"orders/s/messages", `{"messageIds": [`+string(batch.Messages[0].ID)+`]}`)
	must(t, server, 204, "POST", topicPath+"orders/s/message/nack",
		`{"messageIds": [`+string(batch.Messages[1].ID)+`]}`)
}

// series returns the values of /metrics by their full names.
func series(t *testing.T, server *testserver.Server) map[string]string {
	t.Helper()
	_, page := ops(t, server, "/metrics")
	out := map[string]string{}
	for line := range strings.Lines(page) {
		if i := strings.LastIndexByte(line, ' '); i > 0 && line[0] != '#' {
			out[line[:i]] = strings.TrimSpace(line[i:])
		}
	}
	return out
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	server, file := start(t, "{}\n")
	must(t, server, 200, "POST", "/subjects/s1/versions", `{"schema": "\"string\""}`)
	traffic(t, server)
	labels := `{cluster="default",namespace="public/default",organization="default"}`
	eventually(t, "the dead letter",
		func() bool { return series(t, server)["freshet_namespace_dead_letters_total"+labels] == "1" })
	got := series(t, server)
	cluster := `{cluster="default",organization="default"}`
	for name, want := range map[string]string{
		"freshet_namespace_produced_messages_total" + labels:  "5",
		"freshet_namespace_produced_bytes_total" + labels:     "50",
		"freshet_namespace_delivered_messages_total" + labels: "3",
		"freshet_namespace_delivered_bytes_total" + labels:    "30",
		"freshet_namespace_acknowledgements_total" + labels:   "1",
		"freshet_namespace_backlog_messages" + labels:         "3",
		"freshet_namespace_leased_messages" + labels:          "1",
		// One of the topics is for dead letters.
		"freshet_messaging_topics" + cluster:                                                 "2",
		"freshet_messaging_namespaces" + cluster:                                             "1",
		"freshet_messaging_waiting_consumers" + cluster:                                      "0",
		`freshet_registry_subjects{cluster="default",organization="default",state="active"}`: "1",
	} {
		if got[name] != want {
			t.Errorf("%s: got %q, want %s", name, got[name], want)
		}
	}
	for _, name := range []string{
		"freshet_namespace_stored_bytes" + labels, "freshet_namespace_oldest_unacknowledged_age_seconds" + labels,
		"freshet_store_disk_used_bytes" + cluster, "freshet_store_disk_available_bytes" + cluster,
		"process_resident_memory_bytes",
	} {
		if v := got[name]; v == "" || v == "0" {
			t.Errorf("%s: got %q, want more than 0", name, v)
		}
	}
	for name := range got {
		if strings.HasPrefix(name, "freshet_topic_") || strings.HasPrefix(name, "apiserver_") ||
			strings.HasPrefix(name, "etcd_") {
			t.Errorf("%s is exported by default", name)
		}
	}
	// Series of single topics are exported after they are enabled.
	if err := os.WriteFile(file, []byte("metrics: {topics: true}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sendSIGHUP(t, server)
	eventually(t, "series of topics", func() bool {
		const name = `freshet_topic_produced_messages_total{cluster="default",namespace="public/default",` +
			`organization="default",topic="orders"}`
		return series(t, server)[name] == "5"
	})
	lint(t, server)
	if _, all := ops(t, server, "/metrics/all"); !strings.Contains(all, "\napiserver_") ||
		!strings.Contains(all, "\netcd_") || !strings.Contains(all, "\nfreshet_clusters") {
		t.Error("/metrics/all lacks series of the libraries or of Freshet")
	}
	for _, page := range []string{"/readyz", "/livez", "/readyz?verbose"} {
		if status, text := ops(t, server, page); status != http.StatusOK {
			t.Errorf("%s on the ops port: got %d %s, want 200", page, status, text)
		}
	}
	stop(t, server)
}

// lint checks our series with the Prometheus linter.
func lint(t *testing.T, server *testserver.Server) {
	t.Helper()
	_, page := ops(t, server, "/metrics")
	var ours strings.Builder
	families := 0
	for line := range strings.Lines(page) {
		if strings.HasPrefix(strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE "), "freshet_") {
			ours.WriteString(line)
			if strings.HasPrefix(line, "# TYPE ") {
				families++
			}
		}
	}
	problems, err := promlint.New(strings.NewReader(ours.String())).Lint()
	if err != nil || families < 20 {
		t.Fatalf("got %d metric families, %v, want at least 20", families, err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}
