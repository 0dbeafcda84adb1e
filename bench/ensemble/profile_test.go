package ensemble

import (
	"fmt"
	"path/filepath"
	"testing"

	"freshet/bench/process"
)

// profile saves a CPU profile of every member for each row.
func profile(b *testing.B, s *target, dir string) {
	b.Helper()
	fill := httpRow("", fewConnections, callsPerConnection, 1, produce(events()))
	for i, r := range selectedRows() {
		done := make(chan error, len(s.ops))
		for k, ops := range s.ops {
			go func() {
				done <- process.Save(b.Context(), ops+"/debug/pprof/profile?seconds=6",
					filepath.Join(dir, fmt.Sprintf("%d-%d.pprof", i, k)))
			}()
		}
		for saved := 0; saved < len(s.ops); {
			if r.name == consumeRow { // produce messages to consume first
				s.measure(b, &fill)
			}
			s.measure(b, &r)
			for len(done) > 0 {
				if err := <-done; err != nil {
					b.Error(err)
				}
				saved++
			}
		}
	}
}
