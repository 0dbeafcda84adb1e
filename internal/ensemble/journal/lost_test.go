package journal

import (
	"errors"
	"testing"

	"freshet/internal/storage/engine"
)

// TestLost checks that a journal counts as lost while it cannot be rebuilt, and not while it is being rebuilt.
func TestLost(t *testing.T) {
	t.Parallel()
	loss := errors.New("record 7 is missing")
	for name, tc := range map[string]struct {
		journal *guarded
		want    bool
	}{
		"it answers":           {&guarded{}, false},
		"it is rebuilt":        {&guarded{loss: loss, healing: true}, false},
		"it cannot be rebuilt": {&guarded{loss: loss, healing: true, closed: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &Journals{open: map[string]*guarded{"catalogue": {}, "schemas": tc.journal}}
			if err := s.Lost(); errors.Is(err, engine.ErrJournalLost) != tc.want {
				t.Errorf("got error %v, want ErrJournalLost: %v", err, tc.want)
			}
		})
	}
}
