package members_test

import (
	"os"
	"path/filepath"
	"testing"

	"freshet/test/origins"
)

// TestAllClientsOrigins reads many topics, whose partitions have different owners, with one consumer of each
// Kafka client, and checks that every record belongs to the partition that the client reports. Python and Node
// download libraries, so they run only if FRESHET_TEST_CLIENTS is set, as make test-ensemble does.
func TestAllClientsOrigins(t *testing.T) {
	g := start(t)
	var seeds []string
	for _, m := range g.Members {
		seeds = append(seeds, m.Kafka)
	}
	set, err := origins.Fill(t.Context(), seeds, g.Members[0].Token(), "origins")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("franz-go", func(t *testing.T) {
		if err := set.Franz(t.Context()); err != nil {
			t.Error(err)
		}
	})
	programs := []*origins.Program{&origins.Sarama, &origins.Segmentio, &origins.Confluent, &origins.Kcat}
	if os.Getenv("FRESHET_TEST_CLIENTS") != "" {
		programs = append(programs, &origins.Python, &origins.Node)
	}
	for _, p := range programs {
		t.Run(p.Name, func(t *testing.T) {
			if missing := p.Missing(); missing != "" {
				t.Skipf("NOT TESTED: %s is not installed", missing)
			}
			folder, err := p.Copy(t.Context(), filepath.Join("..", "..", "clients"), t.TempDir())
			if err != nil {
				t.Skipf("NOT TESTED: downloading the libraries failed: %v", err)
			}
			if err := p.Run(t.Context(), set, folder, t.TempDir()); err != nil {
				t.Error(err)
			}
		})
	}
}
