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

func TestGateLetsInAsManyAsItShould(t *testing.T) {
	t.Parallel()
	gate := web.NewGate(2, 1<<20)
	for range 3 { // leaving makes room again
		for range 2 {
			if err := gate.Enter(); err != nil {
				t.Fatal(err)
			}
		}
		if err := gate.Enter(); !errors.Is(err, web.ErrBusy) {
			t.Errorf("the third: %v", err)
		}
		gate.Leave()
		gate.Leave()
	}
}

// body is a request with one of a size, whose length is told or not.
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
			gate := web.NewGate(10, 1<<20)
			_, held, err := gate.ReadBody(bodyOf(size, told), limit)
			if err != nil || held != size {
				t.Fatalf("holds %d, %v", held, err)
			}
			if _, small, err := gate.ReadBody(bodyOf(1<<10, told), limit); err != nil || small != 0 {
				t.Errorf("a small body holds %d, %v", small, err)
			}
			if _, none, err := gate.ReadBody(bodyOf(size, told), limit); !errors.Is(err, web.ErrBusy) || none != 0 {
				t.Errorf("without room: holds %d, %v", none, err)
			}
			second := make(chan error)
			go func() {
				body, held, err := gate.ReadBody(bodyOf(size, told), limit)
				if len(body) != size && err == nil {
					err = errors.New("half a body")
				}
				gate.Release(held)
				second <- err
			}()
			synctest.Wait()
			gate.Release(held)
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
		gate := web.NewGate(10, 1<<20)
		stalled, end := io.Pipe()
		waits := bodyOf(size, true)
		waits.Body = stalled
		failed := make(chan error)
		go func() {
			_, _, err := gate.ReadBody(waits, size)
			failed <- err
		}()
		if _, err := io.WriteString(end, "a beginning"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for range 2 {
			_, held, err := gate.ReadBody(bodyOf(size, true), size)
			if err != nil {
				t.Error(err)
			}
			gate.Release(held)
		}
		_ = end.CloseWithError(io.ErrUnexpectedEOF)
		if err := <-failed; err == nil {
			t.Error("half a body was taken for a whole one")
		}
	})
}

func TestBodyLargerThanAllTheRoom(t *testing.T) {
	t.Parallel()
	gate := web.NewGate(1, 100<<10)
	body, held, err := gate.ReadBody(bodyOf(1<<20, true), 1<<20)
	if err != nil || len(body) != 1<<20 || held != 100<<10 {
		t.Errorf("%d bytes, holds %d, %v", len(body), held, err)
	}
}
