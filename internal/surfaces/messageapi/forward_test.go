package messageapi_test

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp"
	"freshet/internal/surfaces/messageapi"
	"freshet/internal/surfaces/pipeline/pipelinetest"
)

// otherMember is another member, which owns the topic "there".
type otherMember struct {
	brokerhttp.SingleServer
	err      error // if set, the member cannot be reached
	requests []string
}

func (e *otherMember) edit(o *messageapi.Options) {
	inner := o.Resolver
	o.Resolver = pipelinetest.ResolverFunc[brokerhttp.Cluster](func(r *http.Request) (brokerhttp.Cluster, error) {
		found, err := inner.Resolve(r)
		found.Members = e
		return found, err
	})
}

// Owner implements brokerhttp.Members.
func (e *otherMember) Owner(_ *http.Request, topic names.Topic) brokerhttp.Sender {
	if topic.Local != "there" {
		return nil
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		if e.err != nil {
			return e.err
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		e.requests = append(e.requests, r.Method+" "+r.RequestURI+" "+string(body))
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
}

// TestRequestsAreForwardedToTheOwner: requests for topics of another member are forwarded
// unchanged, with their bodies unread, after the caller was authenticated.
func TestRequestsAreForwardedToTheOwner(t *testing.T) {
	t.Parallel()
	owner := &otherMember{}
	w := newHarness(t, messaging.Options{}, owner.edit)
	w.ValidateResponses = false
	w.CreateTopic("here", 0)
	const path = "/admin/rest/topics/v1/public/default/"
	w.Call(http.MethodPost, path+"there/message?a=%2F", "hello").WantStatus(http.StatusAccepted)
	if len(owner.requests) != 1 || owner.requests[0] != "POST "+path+"there/message?a=%2F hello" {
		t.Errorf("owner got %q, want the request unchanged", owner.requests)
	}
	w.Call(http.MethodPost, path+"here/message", "hello").WantStatus(http.StatusCreated)
	w.as("nobody").Call(http.MethodPost, path+"there/message", "hello").WantStatus(http.StatusUnauthorized)
	if len(owner.requests) != 1 {
		t.Errorf("owner got %q, want no request of an unknown caller", owner.requests)
	}
	w.as("").Call(http.MethodGet, path+"there/tail?ticket=abc", "").WantStatus(http.StatusAccepted)
	if len(owner.requests) != 2 || owner.requests[1] != "GET "+path+"there/tail?ticket=abc " {
		t.Errorf("owner got %q, want the request with the ticket, which only the owner can check", owner.requests)
	}
}

func TestRequestIsServedLocallyIfTheOwnerIsUnreachable(t *testing.T) {
	t.Parallel()
	owner := &otherMember{err: errors.New("connection refused")}
	w := newHarness(t, messaging.Options{}, owner.edit)
	w.CreateTopic("there", 0)
	w.Call(http.MethodPost, "/admin/rest/topics/v1/public/default/there/message",
		"hello").WantStatus(http.StatusCreated)
}
