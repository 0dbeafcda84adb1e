package kinds_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/kinds/kindstest"
	"freshet/internal/controlplane/reconcile/conditions"
)

// warnings collects the warnings that a client receives.
type warnings struct {
	mu   sync.Mutex
	list []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, text)
}

// TestAsRequestedListsFieldsWithoutEffect checks the condition AsRequested. A cluster that requests more than
// its pool member provides is Ready, and the condition lists the fields without effect. It is True
// for a cluster that requests only what runs.
func TestAsRequestedListsFieldsWithoutEffect(t *testing.T) {
	t.Parallel()
	s := kindstest.StartSystem(t)
	received := &warnings{}
	config := s.Client()
	config.WarningHandler = received
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	api := client.CloudV1alpha1()
	if _, err := api.MessagingInstances("acme").Create(t.Context(), instance("prod"),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	yes, five := true, int32(5)
	tests := map[string]struct {
		spec   v1alpha1.MessagingClusterSpec
		status v1alpha1.ConditionStatus
		names  []string
	}{
		"what-there-is": {v1alpha1.MessagingClusterSpec{
			Broker:  v1alpha1.Broker{ResourceSpec: &v1alpha1.BrokerResourceSpec{NodeType: "shared"}},
			Storage: &v1alpha1.Storage{ResourceSpec: &v1alpha1.StorageResourceSpec{NodeType: "shared"}},
			Config:  &v1alpha1.ClusterConfig{Custom: map[string]string{"registry.format": "true"}},
		}, v1alpha1.ConditionTrue, nil},
		"much": {v1alpha1.MessagingClusterSpec{
			Broker: v1alpha1.Broker{Replicas: &five, Resources: &v1alpha1.BrokerResources{
				CPU: resource.MustParse("1"), Memory: resource.MustParse("4Gi"),
			}},
			Storage:           &v1alpha1.Storage{Replicas: &five},
			MaintenanceWindow: &v1alpha1.MaintenanceWindow{Recurrence: "0"},
			Config: &v1alpha1.ClusterConfig{
				FunctionEnabled: &yes, WebsocketEnabled: &yes, TransactionEnabled: &yes,
				Custom:    map[string]string{"registry.fromat": "true"},
				Protocols: map[string]v1alpha1.ProtocolSettings{"mqtt": {}},
			},
		}, v1alpha1.ConditionFalse, []string{
			"pool member local", "spec.broker.replicas (5 requested, 1 running)", "spec.broker.resources.cpu",
			"spec.storage.replicas (5 requested, 1 running)",
			"spec.maintenanceWindow", "functionEnabled", "websocketEnabled", "transactionEnabled",
			"custom[registry.fromat]", "protocols[mqtt]",
		}},
	}
	for name, tc := range tests {
		tc.spec.InstanceName, tc.spec.Location = "prod", "local"
		_, err := api.MessagingClusters("acme").Create(t.Context(),
			&v1alpha1.MessagingCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: tc.spec},
			metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var got v1alpha1.Condition
		s.Eventually("cluster "+name+" is Ready and has the condition AsRequested", func() bool {
			created, err := api.MessagingClusters("acme").Get(t.Context(), name, metav1.GetOptions{})
			if err != nil || !conditions.IsReady(created.Status.Conditions, created.Generation) {
				return false
			}
			var ok bool
			got, ok = conditions.Find(created.Status.Conditions, "AsRequested")
			return ok
		})
		if got.Status != tc.status {
			t.Errorf("%s: AsRequested: got %s (%s), want %s", name, got.Status, got.Message, tc.status)
		}
		for _, field := range tc.names {
			if !strings.Contains(got.Message, field) {
				t.Errorf("%s: message %q does not contain %s", name, got.Message, field)
			}
		}
	}
	received.mu.Lock()
	defer received.mu.Unlock()
	aboutCustom := slices.DeleteFunc(slices.Clone(received.list),
		func(warning string) bool { return !strings.Contains(warning, "spec.config.custom") })
	if len(aboutCustom) != 1 || !strings.Contains(aboutCustom[0], "registry.fromat") ||
		!strings.Contains(aboutCustom[0], "registry.format") {
		t.Errorf("warnings about custom keys: got %q, want one with the unknown key and the known ones", aboutCustom)
	}
}
