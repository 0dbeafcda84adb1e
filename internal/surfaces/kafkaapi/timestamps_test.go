package kafkaapi_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestTimestampBounds checks that records with a timestamp too far off are rejected, where the
// producer's timestamp counts.
func TestTimestampBounds(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	client := w.client()
	admin := kadm.NewClient(client)
	hour, day := "3600000", "86400000"
	topics := map[string]map[string]*string{
		"plain":  nil,
		"strict": {"message.timestamp.before.max.ms": &hour, "message.timestamp.after.max.ms": &day},
		"stamped": {
			"message.timestamp.before.max.ms": &hour, "message.timestamp.type": kadm.StringPtr("LogAppendTime"),
		},
	}
	for name, configs := range topics {
		if _, err := admin.CreateTopic(short(t), 1, 1, configs, name); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		topic string
		off   time.Duration
		want  error
	}{
		{"plain", -1000 * time.Hour, nil},
		{"plain", 55 * time.Minute, nil},
		{"plain", 65 * time.Minute, kerr.InvalidTimestamp},
		{"strict", -55 * time.Minute, nil},
		{"strict", -65 * time.Minute, kerr.InvalidTimestamp},
		{"strict", 23 * time.Hour, nil},
		{"strict", 25 * time.Hour, kerr.InvalidTimestamp},
		{"stamped", -1000 * time.Hour, nil},
		{"stamped", 1000 * time.Hour, nil},
	} {
		now := time.Now()
		batch := []*kgo.Record{{Topic: tc.topic, Timestamp: now}, {Topic: tc.topic, Timestamp: now.Add(tc.off)}}
		got := client.ProduceSync(short(t), batch...)
		for _, r := range got { // the whole batch is rejected
			if r.Err != tc.want { //nolint:errorlint // the client's own sentinels
				t.Errorf("%s, a record %s off: got %v, want %v", tc.topic, tc.off, r.Err, tc.want)
			}
		}
	}
}
