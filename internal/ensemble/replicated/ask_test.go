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

// A question that a lost leader drops is asked again before its time is over, and the
// first answer counts.
func TestAskDoesNotWaitForADroppedQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		began := time.Now()
		elected := began.Add(2 * time.Second)
		got, err := ask(t.Context(), nil, func(ctx context.Context) (int64, error) {
			n := asked.Add(1)
			if time.Now().Before(elected) {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return n, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if late := time.Since(elected); late > longestAsk {
			t.Errorf("got the answer %s after the election, want %s at most", late, longestAsk)
		}
		if most := int64(2*time.Second/longestAsk) + 4; got > most {
			t.Errorf("asked %d times, want %d at most", got, most)
		}
	})
}

// Who hears of an election asks the new leader at once, and soon again: it may say that
// it leads before it answers. Before that it is asked no more often than by others.
func TestAskHearsOfElections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const election, silence = 2350 * time.Millisecond, 25 * time.Millisecond
		heard := make(chan struct{}, 1)
		began := time.Now()
		time.AfterFunc(election, func() { wake(heard) })
		before := 0
		_, err := ask(t.Context(), heard, func(ctx context.Context) (int, error) {
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
			t.Errorf("got the answer %s after the election, want %s at most", late, 2*silence)
		}
		if most := int(election/longestAsk) + 4; before > most {
			t.Errorf("asked %d times before the election, want %d at most", before, most)
		}
	})
}

// An answer that takes long on its way, as one of megabytes does on a slow connection, is
// waited for, though the question was asked again meanwhile.
func TestAskSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const arrives = 5 * time.Second
		began := time.Now()
		_, err := ask(t.Context(), nil, func(ctx context.Context) (int, error) {
			select {
			case <-time.After(arrives):
				return 0, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		})
		if waited := time.Since(began); err != nil || waited != arrives {
			t.Errorf("got error %v after %s, want the answer after %s", err, waited, arrives)
		}
	})
}

// What an answer says is not asked again; without a leader the last reason is told.
func TestAskEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wrong := errors.New("wrong")
		asked := 0
		if _, err := ask(t.Context(), nil, func(context.Context) (int, error) { asked++; return 0, wrong }); !errors.Is(
			err, wrong) || asked != 1 {
			t.Errorf("got %v after %d questions, want %v after one", err, asked, wrong)
		}
		began := time.Now()
		_, err := ask(t.Context(), nil, func(context.Context) (int, error) { return 0, nats.ErrNoResponders })
		if !errors.Is(err, nats.ErrNoResponders) || time.Since(began) != leaderPatience {
			t.Errorf("without a leader: got %v after %s, want %v after %s", err, time.Since(began),
				nats.ErrNoResponders, leaderPatience)
		}
	})
}
