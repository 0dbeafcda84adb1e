package generatecmd_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"freshet/internal/config"
)

// manifests are the objects of `freshet generate kubernetes` by kind and name, as YAML.
type manifests map[string]string

func kubernetes(t *testing.T, args ...string) manifests {
	t.Helper()
	text, err := generate(t, append([]string{"kubernetes", "--namespace", "prod"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	found := manifests{}
	for _, document := range strings.Split(text, "\n---\n")[1:] {
		var object struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		name := object.Kind + "/" + object.Metadata.Name
		if object.Kind == "Job" { // its name ends with a checksum
			name = object.Kind
		}
		if object.Metadata.Namespace != "prod" || found[name] != "" {
			t.Errorf("%s is in namespace %q, or twice", name, object.Metadata.Namespace)
		}
		found[name] = document
	}
	return found
}

// get decodes an object and rejects unknown fields.
func (m manifests) get(t *testing.T, name string, into any) {
	t.Helper()
	if m[name] == "" {
		t.Fatalf("%s is missing", name)
	}
	if err := yaml.UnmarshalStrict([]byte(m[name]), into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func TestKubernetesSingle(t *testing.T) {
	t.Parallel()
	m := kubernetes(t)
	want := []string{
		"ConfigMap/freshet", "NetworkPolicy/freshet", "Service/freshet", "Service/freshet-members",
		"ServiceAccount/freshet", "StatefulSet/freshet",
	}
	var names []string
	for name := range m {
		names = append(names, name)
	}
	if slices.Sort(names); !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	cfg := serverConfig(t, m, "")
	if cfg.Members.Enabled() || cfg.BaseURL != "https://freshet.prod.svc:8443" || cfg.HTTP != config.Off {
		t.Errorf("got %+v", cfg)
	}
	var set appsv1.StatefulSet
	m.get(t, "StatefulSet/freshet", &set)
	if len(set.Spec.Template.Spec.InitContainers) != 0 || *set.Spec.Replicas != 1 {
		t.Errorf("one server has %d replicas and init containers", *set.Spec.Replicas)
	}
}

// serverConfig returns the configuration of a pod: the file of the ConfigMap, and the variables of the container.
func serverConfig(t *testing.T, m manifests, pod string) *config.Config {
	t.Helper()
	var file corev1.ConfigMap
	m.get(t, "ConfigMap/freshet", &file)
	cfg, err := config.Parse([]byte(file.Data["freshet.yaml"]))
	if err != nil {
		t.Fatal(err)
	}
	var set appsv1.StatefulSet
	m.get(t, "StatefulSet/freshet", &set)
	var environment []string
	for _, v := range set.Spec.Template.Spec.Containers[0].Env {
		if strings.HasPrefix(v.Name, "FRESHET_") {
			environment = append(environment, v.Name+"="+strings.ReplaceAll(v.Value, "$(POD_NAME)", pod))
		}
	}
	if err := cfg.ApplyEnvironment(environment); err != nil {
		t.Fatal(err)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestKubernetesEnsemble(t *testing.T) {
	t.Parallel()
	m := kubernetes(t, "--ensemble", "--base-url", "https://stream.example.com", "--image", "example.com:5000/f:1")
	var set appsv1.StatefulSet
	m.get(t, "StatefulSet/freshet", &set)
	pod := set.Spec.Template.Spec
	if *set.Spec.Replicas != 3 || set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement ||
		*pod.EnableServiceLinks || *pod.AutomountServiceAccountToken {
		t.Errorf("got %d replicas, %s, service links %v, token %v", *set.Spec.Replicas, set.Spec.PodManagementPolicy,
			*pod.EnableServiceLinks, *pod.AutomountServiceAccountToken)
	}
	for i, name := range []string{"freshet-0", "freshet-1", "freshet-2"} {
		cfg := serverConfig(t, m, name)
		own, index := cfg.Members.Own()
		if index != i || own.Etcd != name+".freshet-members.prod.svc:7380" ||
			cfg.BaseURL != "https://stream.example.com" ||
			cfg.Kafka.AdvertisedTLS != name+".freshet-members.prod.svc:9093" {
			t.Errorf("%s: got %+v at %d", name, own, index)
		}
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		s := c.SecurityContext
		if c.Image != "example.com:5000/f:1" || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation ||
			!reflect.DeepEqual(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
			t.Errorf("%s: got image %s, %+v", c.Name, c.Image, s)
		}
	}
	if !*pod.SecurityContext.RunAsNonRoot || pod.SecurityContext.SeccompProfile.Type != "RuntimeDefault" {
		t.Errorf("got %+v", pod.SecurityContext)
	}
	for _, volume := range pod.Volumes { // no pod gets the key of the members' authority
		if volume.Secret == nil {
			continue
		}
		if items := volume.Secret.Items; len(items) != 3 || items[0].Key != "freshet-0.bundle" {
			t.Errorf("volume %s: got %+v", volume.Name, items)
		}
	}
	var budget policyv1.PodDisruptionBudget
	m.get(t, "PodDisruptionBudget/freshet", &budget)
	if budget.Spec.MaxUnavailable.IntValue() != 1 || !reflect.DeepEqual(budget.Spec.Selector, set.Spec.Selector) {
		t.Errorf("got the budget %+v", budget.Spec)
	}
}

// TestKubernetesJob checks that the job may only create secrets, that it names the members of the
// configuration, and that no service, budget or policy of the servers selects its pod.
func TestKubernetesJob(t *testing.T) {
	t.Parallel()
	m := kubernetes(t, "--ensemble")
	var job batchv1.Job
	m.get(t, "Job", &job)
	var role rbacv1.Role
	m.get(t, "Role/freshet-init", &role)
	want := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}}}
	if !reflect.DeepEqual(role.Rules, want) {
		t.Errorf("got %+v, want %+v", role.Rules, want)
	}
	var binding rbacv1.RoleBinding
	m.get(t, "RoleBinding/freshet-init", &binding)
	pod := job.Spec.Template
	if binding.Subjects[0].Name != pod.Spec.ServiceAccountName || pod.Labels["app.kubernetes.io/name"] == "freshet" {
		t.Errorf("got the account %s and the labels %v", pod.Spec.ServiceAccountName, pod.Labels)
	}
	args := pod.Spec.Containers[0].Args
	for _, member := range serverConfig(t, m, "freshet-0").Members.List {
		host := strings.TrimSuffix(member.Internal, ":7443")
		if !slices.Contains(args, member.Name+"="+host) {
			t.Errorf("got the arguments %q, without %s at %s", args, member.Name, host)
		}
	}
	var other batchv1.Job
	kubernetes(t, "--ensemble", "--image", "f:2").get(t, "Job", &other)
	if job.Name == other.Name {
		t.Errorf("jobs with different images have the name %s; kubectl apply would fail", job.Name)
	}
}

// TestKubernetesNetworkPolicy checks who can reach which port: docs/reference/listeners.md.
func TestKubernetesNetworkPolicy(t *testing.T) {
	t.Parallel()
	m := kubernetes(t, "--ensemble")
	var policy networkingv1.NetworkPolicy
	m.get(t, "NetworkPolicy/freshet", &policy)
	peers := map[string][]networkingv1.NetworkPolicyPeer{}
	for _, rule := range policy.Spec.Ingress {
		for _, port := range rule.Ports {
			peers[port.Port.String()] = rule.From
		}
	}
	for _, port := range []string{"https", "kafka"} {
		if from, open := peers[port]; !open || from != nil {
			t.Errorf("%s: got %v, want everybody", port, from)
		}
	}
	for _, port := range []string{"internal", "etcd", "log"} {
		if from := peers[port]; len(from) != 1 || from[0].NamespaceSelector != nil ||
			from[0].PodSelector.MatchLabels["app.kubernetes.io/name"] != "freshet" {
			t.Errorf("%s: got %v, want the members only", port, from)
		}
	}
	if from := peers["ops"]; len(from) != 1 || from[0].NamespaceSelector == nil {
		t.Errorf("ops: got %v, want the namespace of Prometheus", from)
	}
}

func TestKubernetesRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"unknown.yaml": "replicas: 3", "twice.yaml": "members: 1\nmembers: 3", "two.yaml": "members: 2",
		"owned.yaml": "config: {dataDir: /x}", "empty.yaml": "# nothing",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--name", "a\nb"}, "--name takes"},
		{[]string{"--namespace", "A"}, "--namespace takes"},
		{[]string{"--image", "f:1\n  x: y"}, "--image takes"},
		{[]string{"--image", "localhost:5000/f"}, "has no tag"},
		{[]string{"--base-url", "http://x"}, "baseURL"},
		{[]string{"--base-url", "https://x\n"}, "baseURL"},
		{[]string{"--values", filepath.Join(dir, "none.yaml")}, "no such file"},
		{[]string{"--values", filepath.Join(dir, "twice.yaml")}, "members"},
		{[]string{"--values", filepath.Join(dir, "two.yaml")}, "members"},
		{[]string{"--values", filepath.Join(dir, "unknown.yaml")}, "replicas"},
		{[]string{"--values", filepath.Join(dir, "owned.yaml")}, "config.dataDir is a setting that the chart makes"},
	} {
		text, err := generate(t, append([]string{"kubernetes"}, tc.args...)...)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: got %v and %.100q, want %q", tc.args, err, text, tc.want)
		}
	}
	if _, err := generate(t, "kubernetes", "--values", filepath.Join(dir, "empty.yaml")); err != nil {
		t.Errorf("values without a key: %v", err)
	}
}

// TestChartFiles checks the files of the chart that repeat others: `make generate` writes them.
func TestChartFiles(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("../../..", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if read("deploy/helm/freshet/files/alerts.yml") != read("internal/cli/generatecmd/templates/alerts.yml") {
		t.Error("deploy/helm/freshet/files/alerts.yml differs from the alerts of freshet generate; run make generate")
	}
	values := "```yaml\n" + read("deploy/helm/freshet/values.yaml") + "```\n"
	if !strings.Contains(read("docs/reference/helm-values.md"), values) {
		t.Error("docs/reference/helm-values.md differs from values.yaml; run make generate")
	}
}
