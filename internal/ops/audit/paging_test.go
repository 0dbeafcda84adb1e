package audit_test

import (
	"fmt"
	"testing"
	"time"

	"freshet/internal/ops/audit"
)

// TestPagesSkipNothing reads records with equal times, and with times that are slightly out of order, page by page,
// each page until the time of the last record before it.
func TestPagesSkipNothing(t *testing.T) {
	t.Parallel()
	l, _ := open(t, audit.Options{})
	at := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	const n = 20
	for i := range n {
		r := sample
		r.RequestID = fmt.Sprint("R", i)
		r.Time = at.Add(-time.Duration(i%3) * time.Microsecond)
		l.Record(r)
	}
	for _, limit := range []int{1, 3, 7} {
		seen := map[string]int{}
		q := audit.Query{Limit: limit}
		for range n + 1 {
			page := tail(t, l, q)
			if len(page) == 0 {
				break
			}
			for _, r := range page {
				seen[r.RequestID]++
				if r.Time.Sub(at).Abs() > time.Millisecond {
					t.Errorf("%s: got time %v, want about %v", r.RequestID, r.Time, at)
				}
			}
			q.Until = page[len(page)-1].Time
		}
		for i := range n {
			if got := seen[fmt.Sprint("R", i)]; got != 1 {
				t.Errorf("pages of %d: got record %d %d times, want once", limit, i, got)
			}
		}
	}
}

// TestOldRecordsKeepTheirTimes checks that a record that is much older than the one before it keeps its time.
func TestOldRecordsKeepTheirTimes(t *testing.T) {
	t.Parallel()
	l, _ := open(t, audit.Options{})
	late, early := sample, sample
	early.Time = late.Time.Add(-time.Hour)
	l.Record(late)
	l.Record(early)
	got := tail(t, l, audit.Query{})
	if len(got) != 2 || !got[0].Time.Equal(early.Time) || !got[1].Time.Equal(late.Time) {
		t.Errorf("got %v, want both records with their times", got)
	}
}
