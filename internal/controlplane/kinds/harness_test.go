package kinds_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/kinds/kindstest"
)

func newClient(t *testing.T, s *kindstest.Server) versioned.Interface {
	t.Helper()
	client, err := versioned.NewForConfig(s.Client())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func account(name string) *v1alpha1.ServiceAccount {
	return &v1alpha1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
