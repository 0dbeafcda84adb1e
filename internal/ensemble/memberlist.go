package ensemble

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"freshet/internal/ensemble/membership"
)

// listLogInterval is the interval at which a member logs that its list differs from that of others.
const listLogInterval = 10 * time.Second

// AwaitSameList waits until the live members have the same list of members as this one, or a
// majority has. The number of a member, and the members that have a copy of a shard, follow from
// the list. It calls report with the difference while it waits. It is called after Join.
func (m *Member) AwaitSameList(ctx context.Context, report func(why string)) error {
	joined := m.membership.Load()
	var logged time.Time
	for {
		why := differentList(m.opts.Self, m.names, joined.Live())
		if why == "" {
			return nil
		}
		report(why)
		if time.Since(logged) > listLogInterval {
			logged = time.Now()
			m.opts.Log.Error("members.list of the members differ, so this member does not become ready; configure the "+
				"same list on all members and restart those that had another", slog.String("difference", why))
		}
		if err := joined.Changed(ctx); err != nil {
			return err
		}
	}
}

// differentList returns how the list of this member differs from that of a live member, or "". A
// list that a majority of the members has is right, so that a member with another list does not
// keep the others from starting.
func differentList(self string, own []string, live []membership.Record) string {
	same := 1
	var other *membership.Record
	for i, record := range live {
		switch {
		case record.Name == self || len(record.Members) == 0:
		case slices.Equal(record.Members, own):
			same++
		case other == nil:
			other = &live[i]
		}
	}
	if other == nil || same >= len(own)/2+1 {
		return ""
	}
	text := fmt.Sprintf("this member has %s, but member %s has %s", strings.Join(own, ", "), other.Name,
		strings.Join(other.Members, ", "))
	added, missing := without(own, other.Members), without(other.Members, own)
	switch {
	case len(added) == 0 && len(missing) == 0:
		return text + ": the order differs"
	case len(missing) == 0:
		return text + ": it does not have " + strings.Join(added, ", ")
	case len(added) == 0:
		return text + ": this member does not have " + strings.Join(missing, ", ")
	}
	return text + fmt.Sprintf(": only this member has %s, and only that one has %s", strings.Join(added, ", "),
		strings.Join(missing, ", "))
}

// without returns the names of a list that another list does not have.
func without(list, other []string) (names []string) {
	for _, name := range list {
		if !slices.Contains(other, name) {
			names = append(names, name)
		}
	}
	return names
}
