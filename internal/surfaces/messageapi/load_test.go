package messageapi_test

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/messageapi/loadtest"
)

// TestLoad runs 64 producers and 64 consumers. FRESHET_LOAD sets the number of messages;
// the default keeps the test short.
func TestLoad(t *testing.T) {
	t.Parallel()
	messages := 2000
	if text := os.Getenv("FRESHET_LOAD"); text != "" {
		var err error
		if messages, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	for _, partitions := range []int{0, 8} {
		t.Run(strconv.Itoa(partitions), func(t *testing.T) {
			t.Parallel()
			w := newHarness(t, messaging.Options{})
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			report, err := loadtest.Run(ctx, loadtest.Options{
				BaseURL: func() string { return w.Server.URL }, Token: w.Token, Topic: "load", Subscription: "s",
				Partitions: partitions, Producers: 64, Consumers: 64, Messages: messages, PayloadBytes: 200,
			})
			if err != nil {
				t.Fatal(err)
			}
			if report.Produced != messages || report.Consumed != messages || len(report.Problems) > 0 {
				t.Errorf("got report %+v, want %d produced and consumed and no problems", report, messages)
			}
			t.Logf("%d messages in %s, %d redelivered, %d retries", report.Produced,
				report.Elapsed.Round(time.Millisecond), report.Redelivered, report.Retries)
		})
	}
}
