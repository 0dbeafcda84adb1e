package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/ensemble/remote"
	"freshet/internal/storage/engine"
)

// member fails every call with err, or blocks it when err is nil.
type member struct {
	engine.Engine
	err   error
	owner engine.Owner
}

func (m *member) Owned(string, int) (engine.Engine, engine.Owner, error) {
	if m.owner.Member != "a" {
		return nil, m.owner, engine.ErrNotOwner
	}
	return m, m.owner, nil
}

func (m *member) DeleteTopic(ctx context.Context, _ engine.TopicID) error {
	if m.err == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	return m.err
}

// peer is the connection to the only other member.
type peer struct{ *httptest.Server }

func (p peer) Call(string) (*http.Client, string, error) { return p.Client(), p.URL, nil }

func serve(t *testing.T, m *member) (*httptest.Server, *remote.Client) {
	t.Helper()
	server := httptest.NewUnstartedServer(remote.NewServer(m, slog.New(slog.DiscardHandler)))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, &remote.Client{Peers: peer{server}}
}

func TestErrorsKeepTheirIdentity(t *testing.T) {
	t.Parallel()
	m := &member{owner: engine.Owner{Member: "a", Epoch: 3}}
	_, client := serve(t, m)
	shard := client.Shard("c", 0, m.owner)
	for _, sentinel := range []error{
		engine.ErrNoTopic, engine.ErrTopicExists, engine.ErrNoPartition, engine.ErrNoSubscription,
		engine.ErrSubscriptionExists,
		engine.ErrForeignID, engine.ErrLeaseEnded, engine.ErrNoMessage, engine.ErrInvalid, engine.ErrTooLarge,
		engine.ErrTerminated,
		engine.ErrBacklogFull, engine.ErrDiskFull, engine.ErrBusy, engine.ErrConflict, engine.ErrCompacted,
		engine.ErrCorrupt,
		engine.ErrFailed, engine.ErrNotOpen, engine.ErrClosed, engine.ErrNewerFormat, engine.ErrNotOwner,
		engine.ErrNotBegun, engine.ErrNoOwner,
		context.Canceled, context.DeadlineExceeded,
	} {
		m.err = fmt.Errorf("deleting: %w", sentinel)
		err := shard.DeleteTopic(t.Context(), 1)
		if !errors.Is(err, sentinel) || err.Error() != m.err.Error() || errs.KindOf(err) != errs.KindOf(m.err) {
			t.Errorf("got error %v of kind %v, want %v of kind %v", err, errs.KindOf(err), m.err, errs.KindOf(m.err))
		}
		if _, refused := remote.Refused(err); refused {
			t.Errorf("%v: got a refusal, want none, because the engine was called", err)
		}
	}
	id := engine.MessageID{Topic: 1, Partition: 2, Entry: 3}
	m.err = &engine.DamagedMessage{ID: id, Cause: fmt.Errorf("reading: %w", engine.ErrCorrupt)}
	var damaged *engine.DamagedMessage
	if err := shard.DeleteTopic(t.Context(), 1); !errors.As(err, &damaged) || damaged.ID != id ||
		!errors.Is(err, engine.ErrCorrupt) {
		t.Errorf("got error %v, want the damaged message %v", err, id)
	}
}

func TestARefusalNamesTheOwner(t *testing.T) {
	t.Parallel()
	m := &member{owner: engine.Owner{Member: "b", Epoch: 4}}
	_, client := serve(t, m)
	err := client.Shard("c", 0, engine.Owner{Member: "a", Epoch: 3}).DeleteTopic(t.Context(), 1)
	if owner, refused := remote.Refused(err); !refused || owner != m.owner || !errors.Is(err, engine.ErrNotOwner) {
		t.Errorf("got error %v and owner %+v, want a refusal that names %+v", err, owner, m.owner)
	}
	m.owner, m.err = engine.Owner{Member: "a", Epoch: 2}, engine.ErrFailed
	err = client.Shard("c", 0, engine.Owner{Member: "a", Epoch: 3}).DeleteTopic(t.Context(), 1)
	if _, refused := remote.Refused(err); !refused {
		t.Errorf("older epoch than the caller's: got error %v, want a refusal", err)
	}
}

func TestAMemberThatIsDownWasNotCalled(t *testing.T) {
	t.Parallel()
	server, client := serve(t, &member{})
	server.Close()
	err := client.Shard("c", 0, engine.Owner{Member: "a"}).DeleteTopic(t.Context(), 1)
	if _, refused := remote.Refused(err); !refused || !errors.Is(err, engine.ErrNoOwner) {
		t.Errorf("got error %v, want a refusal with %v", err, engine.ErrNoOwner)
	}
}

func TestABrokenConnectionLeavesTheOutcomeUnknown(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	client := &remote.Client{Peers: peer{server}}
	err := client.Shard("c", 0, engine.Owner{Member: "a"}).DeleteTopic(t.Context(), 1)
	if _, refused := remote.Refused(err); refused || !errors.Is(err, remote.ErrUnreachable) ||
		errs.KindOf(err) != errs.Unavailable {
		t.Errorf("got error %v of kind %v, want %v", err, errs.KindOf(err), remote.ErrUnreachable)
	}
}

func TestDeadlinesArePropagated(t *testing.T) {
	t.Parallel()
	m := &member{owner: engine.Owner{Member: "a"}}
	_, client := serve(t, m)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := client.Shard("c", 0, m.owner).DeleteTopic(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestOversizedAndMalformedRequestsAreRejected(t *testing.T) {
	t.Parallel()
	m := &member{owner: engine.Owner{Member: "a"}}
	server, client := serve(t, m)
	large := []engine.Message{{Payload: make([]byte, 65<<20)}}
	if _, err := client.Shard("c", 0, m.owner).Append(t.Context(), 1, 0, large); !errors.Is(err, engine.ErrTooLarge) {
		t.Errorf("got error %v, want %v", err, engine.ErrTooLarge)
	}
	for name, body := range map[string][]byte{
		"nothing": nil, "no request": []byte("GET / HTTP/1.1"), "huge": {0xff, 0xff, 0xff, 0xff, 1},
		"cut": {0, 0, 0, 9, 1},
	} {
		response, err := server.Client().Post(server.URL+remote.Path, "", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != http.StatusBadRequest || strings.Contains(response.Status, "200") {
			t.Errorf("%s: got %s, want 400", name, response.Status)
		}
		_ = response.Body.Close()
	}
}
