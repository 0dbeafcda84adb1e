package web_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"freshet/internal/base/web"
	"freshet/test/tally"
)

func TestLimiterAdmitsUpToItsLimit(t *testing.T) {
	t.Parallel()
	limiter := web.NewLimiter(2, 1<<20)
	one, other := web.Caller{Organization: "one"}, web.Caller{Organization: "other"}
	for range 3 { // Leave admits other requests again
		for _, caller := range []web.Caller{one, other} {
			if err := limiter.Enter(caller); err != nil {
				t.Fatal(err)
			}
		}
		if err := limiter.Enter(web.Caller{Organization: "third"}); !errors.Is(err, web.ErrBusy) {
			t.Errorf("third request: got %v, want %v", err, web.ErrBusy)
		}
		limiter.Leave(one)
		limiter.Leave(other)
	}
}

// bodyOf returns a request with a body of a size, with or without a Content-Length.
func bodyOf(size int, withLength bool) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", size)))
	if !withLength {
		r.ContentLength = -1
	}
	return r
}

func TestBodiesWaitForMemory(t *testing.T) {
	t.Parallel()
	const size, limit = 600 << 10, 600 << 10
	for _, withLength := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			limiter := web.NewLimiter(10, 1<<20)
			_, reserved, err := limiter.ReadBody(bodyOf(size, withLength), web.Caller{Organization: "a"}, limit)
			if err != nil || reserved != size {
				t.Fatalf("first body: reserved %d, error %v, want %d", reserved, err, size)
			}
			if _, small, err := limiter.ReadBody(bodyOf(1<<10, withLength), web.Caller{Organization: "a"},
				limit); err != nil || small != 0 {
				t.Errorf("small body: reserved %d, error %v, want 0", small, err)
			}
			if _, none, err := limiter.ReadBody(bodyOf(size, withLength), web.Caller{Organization: "a"},
				limit); !errors.Is(err, web.ErrBusy) || none != 0 {
				t.Errorf("without free memory: reserved %d, error %v, want 0, %v", none, err, web.ErrBusy)
			}
			second := make(chan error)
			go func() {
				body, reserved, err := limiter.ReadBody(bodyOf(size, withLength), web.Caller{Organization: "a"}, limit)
				if len(body) != size && err == nil {
					err = errors.New("body is incomplete")
				}
				limiter.Release(web.Caller{Organization: "a"}, reserved)
				second <- err
			}()
			synctest.Wait()
			limiter.Release(web.Caller{Organization: "a"}, reserved)
			if err := <-second; err != nil {
				t.Errorf("after memory was released: %v", err)
			}
		})
	}
}

// TestAnnouncedBodyReservesNoMemory: a body that was only announced reserves no memory.
func TestAnnouncedBodyReservesNoMemory(t *testing.T) {
	t.Parallel()
	const size = 600 << 10
	synctest.Test(t, func(t *testing.T) {
		limiter := web.NewLimiter(10, 1<<20)
		stalled, end := io.Pipe()
		waits := bodyOf(size, true)
		waits.Body = stalled
		failed := make(chan error)
		go func() {
			_, _, err := limiter.ReadBody(waits, web.Caller{Organization: "a"}, size)
			failed <- err
		}()
		if _, err := io.WriteString(end, "a beginning"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for range 2 {
			_, reserved, err := limiter.ReadBody(bodyOf(size, true), web.Caller{Organization: "a"}, size)
			if err != nil {
				t.Error(err)
			}
			limiter.Release(web.Caller{Organization: "a"}, reserved)
		}
		_ = end.CloseWithError(io.ErrUnexpectedEOF)
		if err := <-failed; err == nil {
			t.Error("ReadBody returned an incomplete body without an error")
		}
	})
}

func TestBodyLargerThanAllMemory(t *testing.T) {
	t.Parallel()
	limiter := web.NewLimiter(1, 100<<10)
	body, reserved, err := limiter.ReadBody(bodyOf(1<<20, true), web.Caller{Organization: "a"}, 1<<20)
	if err != nil || len(body) != 1<<20 || reserved != 100<<10 {
		t.Errorf("got %d bytes, %d reserved, error %v, want %d bytes, %d reserved", len(body), reserved, err, 1<<20,
			100<<10)
	}
}

// TestAttackStalledLargeBodies: bodies that stop arriving do not use the memory share of
// other organizations.
func TestAttackStalledLargeBodies(t *testing.T) {
	t.Parallel()
	const size, attackers = 600 << 10, 50
	accepted := 0
	synctest.Test(t, func(t *testing.T) {
		limiter := web.NewLimiter(10, 4<<20)
		attacker, victim := web.Caller{Organization: "attacker"}, web.Caller{Organization: "victim"}
		var pipes []*io.PipeWriter
		var group sync.WaitGroup
		for range attackers {
			stalled, end := io.Pipe()
			pipes = append(pipes, end)
			r := bodyOf(size, true)
			r.Body = stalled
			group.Go(func() {
				_, reserved, _ := limiter.ReadBody(r, attacker, size) // reading never succeeds
				limiter.Release(attacker, reserved)
			})
			group.Go(func() { _, _ = io.WriteString(end, strings.Repeat("x", 100<<10)) }) // then the body stalls
		}
		synctest.Wait()
		for range 3 {
			_, reserved, err := limiter.ReadBody(bodyOf(size, true), victim, size)
			if err != nil {
				accepted++
				t.Errorf("reading a body while others stall: %v", err)
			}
			limiter.Release(victim, reserved)
		}
		for _, end := range pipes {
			_ = end.CloseWithError(io.ErrUnexpectedEOF)
		}
		group.Wait()
	})
	tally.Attack(t, "large bodies that stall", attackers, accepted)
}
