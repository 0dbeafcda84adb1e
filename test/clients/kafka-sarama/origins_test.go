package sarama_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestOrigins reads several topics with one consumer and writes the records to files. The parent folder's
// tests check that every record belongs to the partition that this client reports (package origins). Sarama
// has no limit for a whole response.
func TestOrigins(t *testing.T) {
	t.Parallel()
	if os.Getenv("FRESHET_ORIGIN_TOPICS") == "" {
		t.Skip("NOT TESTED: FRESHET_ORIGIN_TOPICS is not set; make test and make test-ensemble set it")
	}
	topics := strings.Split(os.Getenv("FRESHET_ORIGIN_TOPICS"), ",")
	records, err := strconv.Atoi(os.Getenv("FRESHET_ORIGIN_RECORDS"))
	do(t, err)
	for name, limit := range map[string]int32{"default": 0, "small": 100_000, "medium": 250_000} {
		t.Run(name, func(t *testing.T) {
			c := config(t)
			c.Consumer.Offsets.AutoCommit.Enable = false
			if limit > 0 {
				c.Consumer.Fetch.Default = limit
			}
			m := join(t, c, unique("origins"), topics...)
			out, err := os.Create(filepath.Join(os.Getenv("FRESHET_ORIGIN_OUTPUT"), "sarama-"+name))
			do(t, err)
			closing(t, out)
			for range records {
				r := within(t, m.messages, "a record")
				_, err := fmt.Fprintf(out, "%s %d %d %d\n%s\n", r.Topic, r.Partition, r.Offset, len(r.Value), r.Value)
				do(t, err)
			}
		})
	}
}
