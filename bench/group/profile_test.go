package group

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// profile keeps a processor profile of every member for each row.
func profile(b *testing.B, s *side, dir string) {
	b.Helper()
	for i, r := range wanted() {
		done := make(chan error, len(s.ops))
		for k, ops := range s.ops {
			go func() {
				done <- save(ops+"/debug/pprof/profile?seconds=6", filepath.Join(dir, fmt.Sprintf("%d-%d.pprof", i, k)))
			}()
		}
		for saved := 0; saved < len(s.ops); {
			if r.name == consumeRow { // it needs something to consume
				before := called("", few, calls, 1, produce)
				s.spend(b, &before)
			}
			s.spend(b, &r)
			for len(done) > 0 {
				if err := <-done; err != nil {
					b.Error(err)
				}
				saved++
			}
		}
	}
}

func save(url, file string) error {
	res, err := http.Get(url)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, res.Body)
	return errors.Join(err, f.Close())
}
