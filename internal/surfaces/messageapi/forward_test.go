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
	"freshet/internal/surfaces/pipeline"
)

// elsewhere is another member, which owns the topic "there".
type elsewhere struct {
	err  error // if set, the member cannot be reached
	sent []string
}

func (e *elsewhere) edit(o *messageapi.Options) {
	inner := o.Resolver
	o.Resolver = pipeline.ResolverFunc[brokerhttp.Cluster](func(r *http.Request) (brokerhttp.Cluster, error) {
		found, err := inner.Resolve(r)
		found.Owner = func(_ *http.Request, topic names.Topic) brokerhttp.Sender {
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
				e.sent = append(e.sent, r.Method+" "+r.RequestURI+" "+string(body))
				w.WriteHeader(http.StatusAccepted)
				return nil
			}
		}
		return found, err
	})
}

// TestRequestsGoToTheOwner: requests for topics of another member are forwarded
// unchanged, with their bodies unread, after the caller was authenticated.
func TestRequestsGoToTheOwner(t *testing.T) {
	t.Parallel()
	owner := &elsewhere{}
	w := newWorld(t, messaging.Options{}, owner.edit)
	w.Checked = false
	w.Ready("here", 0)
	const path = "/admin/rest/topics/v1/public/default/"
	w.Call(http.MethodPost, path+"there/message?a=%2F", "hello").Want(http.StatusAccepted)
	if len(owner.sent) != 1 || owner.sent[0] != "POST "+path+"there/message?a=%2F hello" {
		t.Errorf("owner got %q, want the request unchanged", owner.sent)
	}
	w.Call(http.MethodPost, path+"here/message", "hello").Want(http.StatusCreated)
	w.as("nobody").Call(http.MethodPost, path+"there/message", "hello").Want(http.StatusUnauthorized)
	if len(owner.sent) != 1 {
		t.Errorf("owner got %q, want no request of an unknown caller", owner.sent)
	}
	w.as("").Call(http.MethodGet, path+"there/tail?ticket=abc", "").Want(http.StatusAccepted)
	if len(owner.sent) != 2 || owner.sent[1] != "GET "+path+"there/tail?ticket=abc " {
		t.Errorf("owner got %q, want the request with the ticket, which only the owner can check", owner.sent)
	}
}

func TestARequestWhoseOwnerIsNotReachedIsTriedHere(t *testing.T) {
	t.Parallel()
	owner := &elsewhere{err: errors.New("connection refused")}
	w := newWorld(t, messaging.Options{}, owner.edit)
	w.Ready("there", 0)
	w.Call(http.MethodPost, "/admin/rest/topics/v1/public/default/there/message", "hello").Want(http.StatusCreated)
}
