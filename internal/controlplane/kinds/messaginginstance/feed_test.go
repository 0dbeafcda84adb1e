package messaginginstance_test

import (
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/kinds/messaginginstance"
	"freshet/internal/identity"
)

func prod(revision int, lifetime int32) *v1alpha1.MessagingInstance {
	return &v1alpha1.MessagingInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "prod", ResourceVersion: strconv.Itoa(revision)},
		Spec: v1alpha1.MessagingInstanceSpec{Auth: &v1alpha1.InstanceAuth{
			OAuth2: &v1alpha1.InstanceAuthOAuth2{TokenLifetimeSeconds: lifetime},
		}},
	}
}

func deleting(o *v1alpha1.MessagingInstance) *v1alpha1.MessagingInstance {
	now := metav1.Now()
	o.DeletionTimestamp = &now
	return o
}

func TestFeedIgnoresOlderEvents(t *testing.T) {
	t.Parallel()
	directory := identity.NewDirectory()
	feed := messaginginstance.New(nil, "", directory, nil)
	key := func(id string) { directory.PutKey(identity.Key{ID: id, Organization: "acme", Instance: "prod"}) }
	check := func(what string, want time.Duration, known bool) {
		t.Helper()
		if got, ok := feed.TokenLifetime("acme", "prod"); ok != known || got != want {
			t.Errorf("%s: got %s %v, want %s %v", what, got, ok, want, known)
		}
	}
	check("unknown", 0, false)
	feed.Put(prod(5, 60))
	check("created", time.Minute, true)
	feed.Put(prod(7, 120))
	feed.Put(prod(6, 30)) // late
	check("updated", 2*time.Minute, true)
	key("a")
	feed.Put(deleting(prod(8, 120)))
	check("deletion requested", 0, false)
	if got := directory.KeysOf("acme", "prod"); got != 0 {
		t.Errorf("keys after the deletion of their instance: got %d, want 0", got)
	}
	feed.Put(prod(7, 120)) // late
	check("late event of an existing instance", 0, false)
	feed.Put(prod(10, 0))
	check("another instance of the same name", 0, true)
	key("b")
	feed.Remove(prod(9, 120)) // the late deletion of the first instance
	check("late event of a deletion", 0, true)
	if got := directory.KeysOf("acme", "prod"); got != 1 {
		t.Errorf("keys of the next instance after the late deletion of the first: got %d, want 1", got)
	}
	feed.Remove(prod(11, 0))
	check("deleted", 0, false)
}
