package replicated

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
)

// A query that a lost leader drops is sent again before its timeout, and the first response
// counts.
func TestQueryDoesNotWaitForADroppedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var queries atomic.Int64
		began := time.Now()
		elected := began.Add(2 * time.Second)
		got, err := queryLeader(t.Context(), nil, func(ctx context.Context) (int64, error) {
			n := queries.Add(1)
			if time.Now().Before(elected) {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return n, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if late := time.Since(elected); late > maxQueryInterval {
			t.Errorf("got the response %s after the election, want at most %s", late, maxQueryInterval)
		}
		if most := int64(2*time.Second/maxQueryInterval) + 4; got > most {
			t.Errorf("sent %d queries, want at most %d", got, most)
		}
	})
}

// A caller with notifications of elections queries the new leader immediately and soon
// again, because a leader may announce itself before it responds. Before the election it
// sends no more queries than other callers.
func TestQueryFollowsElections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const election, silence = 2350 * time.Millisecond, 25 * time.Millisecond
		elected := make(chan struct{}, 1)
		began := time.Now()
		time.AfterFunc(election, func() { wake(elected) })
		before := 0
		_, err := queryLeader(t.Context(), elected, func(ctx context.Context) (int, error) {
			if time.Since(began) < election {
				before++
			}
			if time.Since(began) < election+silence {
				return 0, nats.ErrNoResponders
			}
			return 0, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if late := time.Since(began) - election; late > 2*silence {
			t.Errorf("got the response %s after the election, want at most %s", late, 2*silence)
		}
		if most := int(election/maxQueryInterval) + 4; before > most {
			t.Errorf("sent %d queries before the election, want at most %d", before, most)
		}
	})
}

// A slow response, for example of megabytes over a slow connection, is accepted even though
// the query was sent again meanwhile.
func TestQueryAcceptsALateResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const arrives = 5 * time.Second
		began := time.Now()
		_, err := queryLeader(t.Context(), nil, func(ctx context.Context) (int, error) {
			select {
			case <-time.After(arrives):
				return 0, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		})
		if waited := time.Since(began); err != nil || waited != arrives {
			t.Errorf("got error %v after %s, want the response after %s", err, waited, arrives)
		}
	})
}

// A large response that is slow is requested again only after waits that double.
func TestLargeQueryIsNotRepeatedWhileItsResponseIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const arrives = 6 * time.Second
		began := time.Now()
		var queries, probes atomic.Int64
		probe := func(context.Context) error { probes.Add(1); return nil }
		_, err := queryLarge(t.Context(), nil, probe, func(ctx context.Context) (int, error) {
			queries.Add(1)
			select {
			case <-time.After(arrives):
				return 0, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		})
		if waited := time.Since(began); err != nil || waited != arrives {
			t.Errorf("got error %v after %s, want the response after %s", err, waited, arrives)
		}
		if got := queries.Load(); got != 3 { // at 0, 1 and 3 s
			t.Errorf("got %d queries and %d probes, want 3 queries", got, probes.Load())
		}
	})
}

// A large query that a lost leader dropped is sent again as soon as the next leader answers a probe, or
// announces itself, and not before.
func TestLargeQueryFollowsElections(t *testing.T) {
	for name, announced := range map[string]bool{"announced": true, "found": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const election = 2350 * time.Millisecond
				began := time.Now()
				led := func(ctx context.Context) error {
					if time.Since(began) >= election {
						return nil
					}
					<-ctx.Done()
					return ctx.Err()
				}
				var elected chan struct{}
				if announced {
					elected = make(chan struct{}, 1)
					time.AfterFunc(election, func() { wake(elected) })
				}
				var queries atomic.Int64
				_, err := queryLarge(t.Context(), elected, led, func(ctx context.Context) (int, error) {
					queries.Add(1)
					return 0, led(ctx)
				})
				if err != nil {
					t.Fatal(err)
				}
				if late := time.Since(began) - election; late > maxQueryInterval || announced && late > 0 {
					t.Errorf("got the response %s after the election, want at most %s, and 0 when announced", late,
						maxQueryInterval)
				}
				if got := queries.Load(); got != 2 {
					t.Errorf("got %d queries, want 2", got)
				}
			})
		})
	}
}

// Without a leader, a large query returns the last error.
func TestLargeQueryEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		refused := func(context.Context) error { return nats.ErrNoResponders }
		_, err := queryLarge(t.Context(), nil, refused, func(context.Context) (int, error) {
			return 0, nats.ErrNoResponders
		})
		if !errors.Is(err, nats.ErrNoResponders) || time.Since(began) != leaderTimeout {
			t.Errorf("without a leader: got %v after %s, want %v after %s", err, time.Since(began),
				nats.ErrNoResponders, leaderTimeout)
		}
	})
}

// An error in a response ends the query; without a leader the last error is returned.
func TestQueryEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wrong := errors.New("wrong")
		queries := 0
		if _, err := queryLeader(t.Context(), nil,
			func(context.Context) (int, error) { queries++; return 0, wrong }); !errors.Is(
			err, wrong) || queries != 1 {
			t.Errorf("got %v after %d queries, want %v after one", err, queries, wrong)
		}
		began := time.Now()
		_, err := queryLeader(t.Context(), nil, func(context.Context) (int, error) { return 0, nats.ErrNoResponders })
		if !errors.Is(err, nats.ErrNoResponders) || time.Since(began) != leaderTimeout {
			t.Errorf("without a leader: got %v after %s, want %v after %s", err, time.Since(began),
				nats.ErrNoResponders, leaderTimeout)
		}
	})
}
