package listen

import (
	"testing"
)

func TestFilesAreDivided(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		limit uint64
		want  Budget
	}{
		"hardly any": {300, Budget{150, 75}},
		"few":        {1024, Budget{512, 256}},
		"some":       {20_000, Budget{18_000, 1000}},
		"many":       {1 << 20, Budget{1<<20 - 2000, 1000}},
		"no limit":   {1<<64 - 1, Budget{1<<30 - 2000, 1000}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := divideFiles(tc.limit); got != tc.want {
				t.Errorf("%d files: %+v, want %+v", tc.limit, got, tc.want)
			}
		})
	}
}

func TestKafkaLeavesFilesToHTTP(t *testing.T) {
	t.Parallel()
	for limit, want := range map[uint64]int{300: 100, 1024: 341, 20_000: 10_000} {
		if got := divideFiles(limit).Kafka(10_000); got != want {
			t.Errorf("Kafka connections of a listener with %d open files: got %d, want %d", limit, got, want)
		}
	}
}
