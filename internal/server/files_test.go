package server

import "testing"

func TestFilesAreDivided(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		limit uint64
		want  files
	}{
		"hardly any": {300, files{75, 75}},
		"few":        {1024, files{256, 256}},
		"many":       {65_536, files{16_384, 1000}},
		"enough":     {1 << 20, files{20_000, 1000}},
		"no limit":   {1<<64 - 1, files{20_000, 1000}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := divideFiles(tc.limit, 20_000); got != tc.want {
				t.Errorf("%d files: %+v, want %+v", tc.limit, got, tc.want)
			}
		})
	}
}
