package apiserver_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
)

// TestShutdown ends watches, answers calls that have begun, and gives back
// everything; a second stop does no harm.
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
		t.Fatalf("the service cannot use its own API: %v", err)
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
		t.Error("the service can still use its API after it has stopped")
	}
	a.server.Restart()
	a.get("users/ann").want(http.StatusOK)
}
