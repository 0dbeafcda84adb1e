package apiserver_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
)

// TestShutdown checks that Stop ends watches, completes running calls and closes everything, and
// that a second Stop does no harm.
func TestShutdown(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("User")
	a.post("users", k.object("ann")).want(http.StatusCreated)
	w := a.watch("users?watch=true")
	w.want("ADDED ann")
	loop, err := versioned.NewForConfig(a.server.Loopback())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := loop.CloudV1alpha1().Users("acme").Get(t.Context(), "ann", metav1.GetOptions{}); err != nil {
		t.Fatalf("call over the loopback: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	began := time.Now()
	if err := a.server.Stop(ctx); err != nil {
		t.Fatalf("stop: %v", err)
	}
	t.Logf("stopped after %s", time.Since(began))
	w.rest()
	if _, err := loop.CloudV1alpha1().Users("acme").Get(t.Context(), "ann", metav1.GetOptions{}); err == nil {
		t.Error("call over the loopback after Stop: got no error, want one")
	}
	a.server.Restart()
	a.get("users/ann").want(http.StatusOK)
}
