package rejoin

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"freshet/internal/controlplane/etcd"
	"freshet/internal/ensemble/integrity"
)

// TestRecordDamage checks that damage is recorded if the files do not show it at the next start, also when they are
// intact now: freshet ensemble rejoin refuses members whose data is intact and that recorded nothing.
func TestRecordDamage(t *testing.T) {
	t.Parallel()
	cause := errors.New("snap/db: revision 7 differs from that of the other members")
	for _, c := range []struct {
		name string
		err  error
		want string // part of the recorded problem; nothing is recorded if empty
	}{
		{"found by running the member", &etcd.Damage{Cause: cause}, cause.Error()},
		{
			"found by running the member, wrapped",
			fmt.Errorf("starting etcd: %w", &etcd.Damage{Cause: cause}), cause.Error(),
		},
		{"found in the files", &etcd.Damage{Cause: cause, InFiles: true}, ""},
		{"not damage", errors.New("address already in use"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			register, err := integrity.Open(t.TempDir(), integrity.Options{})
			if err != nil {
				t.Fatal(err)
			}
			recordDamage(register, c.err)
			part := register.Part(Part)
			recorded := !part.Damaged.IsZero()
			if recorded != (c.want != "") || !strings.Contains(part.Problem, c.want) {
				t.Errorf("recorded: got %v with problem %q, want %q", recorded, part.Problem, c.want)
			}
		})
	}
}
