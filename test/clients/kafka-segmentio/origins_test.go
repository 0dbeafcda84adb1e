package segmentio_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

// TestOrigins reads several topics with one reader and writes the records to files. The parent folder's
// tests check the origin of every record (package origins). kafka-go fetches each partition with a separate
// request.
func TestOrigins(t *testing.T) {
	t.Parallel()
	topics, output := os.Getenv("FRESHET_ORIGIN_TOPICS"), os.Getenv("FRESHET_ORIGIN_OUTPUT")
	if topics == "" {
		t.Skip("NOT TESTED: FRESHET_ORIGIN_TOPICS is not set; make test and make test-ensemble set it")
	}
	records, err := strconv.Atoi(os.Getenv("FRESHET_ORIGIN_RECORDS"))
	do(t, err)
	for name, limit := range map[string]int{"default": 0, "small": 100_000, "medium": 250_000} {
		t.Run(name, func(t *testing.T) {
			r := kafka.NewReader(kafka.ReaderConfig{
				Brokers: strings.Split(address(t), ","), Dialer: dialer(), MaxWait: 100 * time.Millisecond,
				MaxBytes: limit,
				GroupID:  unique("origins"), GroupTopics: strings.Split(topics, ","), StartOffset: kafka.FirstOffset,
			})
			defer func() { do(t, r.Close()) }()
			file, err := os.Create(filepath.Join(output, "segmentio-"+name))
			do(t, err)
			defer func() { do(t, file.Close()) }()
			ctx := short(t)
			for range records {
				got, err := r.FetchMessage(ctx)
				do(t, err)
				_, err = fmt.Fprintf(file, "%s %d %d %d\n%s\n", got.Topic, got.Partition, got.Offset,
					len(got.Value), got.Value)
				do(t, err)
			}
		})
	}
}
