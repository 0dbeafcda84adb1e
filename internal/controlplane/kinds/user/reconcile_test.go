package user_test

import (
	"log/slog"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	typed "freshet/api/generated/clientset/versioned/typed/api/v1alpha1"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/kinds/kindstest"
	"freshet/internal/controlplane/kinds/user"
	"freshet/internal/controlplane/reconcile/conditions"
	"freshet/internal/identity"
	"freshet/internal/identity/signin"
)

func start(t *testing.T) typed.UserInterface {
	t.Helper()
	s := kindstest.Start(t, kindstest.Options{})
	client, err := versioned.NewForConfig(s.Loopback())
	if err != nil {
		t.Fatal(err)
	}
	service := signin.New(signin.Options{Directory: identity.NewDirectory(), Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(kindstest.Run(t, client, user.New(user.Options{
		Directory: identity.NewDirectory(), SignIns: service.People,
	})))
	return client.CloudV1alpha1().Users("acme")
}

// wait watches a user until its condition Ready is as wanted.
func wait(t *testing.T, users typed.UserInterface, name, want string) {
	t.Helper()
	u := kindstest.AwaitReady(t, users.Watch, name, want,
		func(u *v1alpha1.User) []v1alpha1.Condition { return u.Status.Conditions })
	ready, _ := conditions.Find(u.Status.Conditions, v1alpha1.ConditionReady)
	if active, ok := conditions.Find(u.Status.Conditions, "Active"); !ok || active.Status != "False" ||
		active.Reason != ready.Reason || ready.Message == "" {
		t.Errorf("user %s: got Active %+v and Ready %+v, want both False with the same reason and a message", name,
			active, ready)
	}
}

func TestInvitationsDecide(t *testing.T) {
	t.Parallel()
	users := start(t)
	invited := func(decision string, in time.Duration) *v1alpha1.UserInvitation {
		return &v1alpha1.UserInvitation{Decision: decision, Expiration: metav1.NewTime(time.Now().Add(in))}
	}
	for name, tc := range map[string]struct {
		invitation *v1alpha1.UserInvitation
		want       string
	}{
		"member":   {nil, "False NotInvited"},
		"accepted": {invited("Accepted", -time.Hour), "False NotInvited"},
		"declined": {invited("declined", time.Hour), "False InvitationDeclined"},
		"expired":  {invited("pending", -time.Hour), "False InvitationExpired"},
		"pending":  {invited("pending", time.Hour), "False InvitationPending"},
	} {
		_, err := users.Create(t.Context(), &v1alpha1.User{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1alpha1.UserSpec{Email: name + "@example.com", Invitation: tc.invitation},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		wait(t, users, name, tc.want)
	}
}

func TestInvitationExpires(t *testing.T) {
	t.Parallel()
	users := start(t)
	_, err := users.Create(t.Context(), &v1alpha1.User{
		ObjectMeta: metav1.ObjectMeta{Name: "late"},
		Spec: v1alpha1.UserSpec{Email: "late@example.com", Invitation: &v1alpha1.UserInvitation{
			Decision: "pending", Expiration: metav1.NewTime(time.Now().Add(2 * time.Second)),
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wait(t, users, "late", "False InvitationPending")
	wait(t, users, "late", "False InvitationExpired")
}

func TestUserIsDeleted(t *testing.T) {
	t.Parallel()
	users := start(t)
	_, err := users.Create(t.Context(), &v1alpha1.User{
		ObjectMeta: metav1.ObjectMeta{Name: "ada"}, Spec: v1alpha1.UserSpec{Email: "ada@example.com"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wait(t, users, "ada", "False NotInvited")
	watch, err := users.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	if err := users.Delete(t.Context(), "ada", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(20 * time.Second)
	for {
		if _, err := users.Get(t.Context(), "ada", metav1.GetOptions{}); apierrors.IsNotFound(err) {
			return
		}
		select {
		case <-watch.ResultChan():
		case <-deadline:
			t.Fatal("timed out waiting for the deletion of the user")
		}
	}
}
