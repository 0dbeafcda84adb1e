package web_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"freshet/internal/web"
)

func TestLimiterLetsInAsManyAsItShould(t *testing.T) {
	t.Parallel()
	limiter := web.NewLimiter(2, 1<<20)
	for range 3 { // leaving makes room again
		for range 2 {
			if err := limiter.Enter(); err != nil {
				t.Fatal(err)
			}
		}
		if err := limiter.Enter(); !errors.Is(err, web.ErrBusy) {
			t.Errorf("the third request: got %v, want %v", err, web.ErrBusy)
		}
		limiter.Leave()
		limiter.Leave()
	}
}

// bodyOf is a request with a body of a size, whose length is told or not.
func bodyOf(size int, told bool) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", size)))
	if !told {
		r.ContentLength = -1
	}
	return r
}

func TestBodiesWaitForRoom(t *testing.T) {
	t.Parallel()
	const size, limit = 600 << 10, 600 << 10
	for _, told := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			limiter := web.NewLimiter(10, 1<<20)
			_, held, err := limiter.ReadBody(bodyOf(size, told), limit)
			if err != nil || held != size {
				t.Fatalf("the body holds %d, %v, want %d", held, err, size)
			}
			if _, small, err := limiter.ReadBody(bodyOf(1<<10, told), limit); err != nil || small != 0 {
				t.Errorf("a small body holds %d, %v, want 0", small, err)
			}
			if _, none, err := limiter.ReadBody(bodyOf(size, told), limit); !errors.Is(err, web.ErrBusy) || none != 0 {
				t.Errorf("without room: holds %d, %v, want 0, %v", none, err, web.ErrBusy)
			}
			second := make(chan error)
			go func() {
				body, held, err := limiter.ReadBody(bodyOf(size, told), limit)
				if len(body) != size && err == nil {
					err = errors.New("half a body")
				}
				limiter.Release(held)
				second <- err
			}()
			synctest.Wait()
			limiter.Release(held)
			if err := <-second; err != nil {
				t.Errorf("once there was room: %v", err)
			}
		})
	}
}

// TestWhoOnlyAnnouncesHoldsNothing: room is for what comes.
func TestWhoOnlyAnnouncesHoldsNothing(t *testing.T) {
	t.Parallel()
	const size = 600 << 10
	synctest.Test(t, func(t *testing.T) {
		limiter := web.NewLimiter(10, 1<<20)
		stalled, end := io.Pipe()
		waits := bodyOf(size, true)
		waits.Body = stalled
		failed := make(chan error)
		go func() {
			_, _, err := limiter.ReadBody(waits, size)
			failed <- err
		}()
		if _, err := io.WriteString(end, "a beginning"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for range 2 {
			_, held, err := limiter.ReadBody(bodyOf(size, true), size)
			if err != nil {
				t.Error(err)
			}
			limiter.Release(held)
		}
		_ = end.CloseWithError(io.ErrUnexpectedEOF)
		if err := <-failed; err == nil {
			t.Error("half a body was taken for a whole one")
		}
	})
}

func TestBodyLargerThanAllTheRoom(t *testing.T) {
	t.Parallel()
	limiter := web.NewLimiter(1, 100<<10)
	body, held, err := limiter.ReadBody(bodyOf(1<<20, true), 1<<20)
	if err != nil || len(body) != 1<<20 || held != 100<<10 {
		t.Errorf("read %d bytes, holds %d, %v, want %d bytes, %d held", len(body), held, err, 1<<20, 100<<10)
	}
}
