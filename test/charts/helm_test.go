package charts

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const (
	chartDir  = "../../deploy/helm/freshet"
	release   = "freshet"
	namespace = "freshet"
)

// renderWithHelm renders the chart with the Helm library, as an installation. It returns the text of the
// templates by file name, NOTES.txt among them.
func renderWithHelm(t *testing.T, values map[string]any) (map[string]string, error) {
	t.Helper()
	chart, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	all, err := util.ToRenderValues(chart, values, common.ReleaseOptions{
		Name: release, Namespace: namespace, Revision: 1, IsInstall: true,
	}, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(chart, all)
}

// valuesFiles returns the files in testdata by name.
func valuesFiles(t *testing.T) map[string]string {
	t.Helper()
	list, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(list) < 5 {
		t.Fatalf("found %d files in testdata: %v", len(list), err)
	}
	files := map[string]string{}
	for _, file := range list {
		files[strings.TrimSuffix(filepath.Base(file), ".yaml")] = file
	}
	return files
}

func readValues(t *testing.T, file string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	if err := yaml.UnmarshalStrict(text, &values); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return values
}

func TestLint(t *testing.T) {
	for name, file := range valuesFiles(t) {
		result := lint.RunAll(chartDir, readValues(t, file), namespace)
		for _, message := range result.Messages {
			if message.Severity > support.InfoSev { // the chart has no icon, which is only recommended
				t.Errorf("%s: %s", name, message)
			}
		}
	}
}

// TestSameAsHelm compares the objects that Helm renders with those of `freshet generate kubernetes`.
func TestSameAsHelm(t *testing.T) {
	for name, file := range valuesFiles(t) {
		t.Run(name, func(t *testing.T) {
			files, err := renderWithHelm(t, readValues(t, file))
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]any{}
			for template, text := range files {
				if strings.HasSuffix(template, "NOTES.txt") {
					if strings.Contains(text, "<no value>") || !strings.Contains(text, "admin link") {
						t.Errorf("NOTES.txt:\n%s", text)
					}
					continue
				}
				text = strings.ReplaceAll(text, "app.kubernetes.io/managed-by: Helm", "app.kubernetes.io/managed-by: freshet")
				maps.Copy(want, objects(t, text))
			}
			got := objects(t, generate(t, "--values", file))
			if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
				t.Fatalf("got the objects %v, want %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
			}
			for object := range want {
				if !reflect.DeepEqual(got[object], want[object]) {
					t.Errorf("%s: got\n%s\nwant\n%s", object, show(t, got[object]), show(t, want[object]))
				}
			}
		})
	}
}

func show(t *testing.T, object any) string {
	t.Helper()
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestInvalidValues checks that Helm and the command reject the same values, with the field.
func TestInvalidValues(t *testing.T) {
	for name, tc := range map[string]struct{ values, field string }{
		"two members":           {"members: 2", "members"},
		"unknown":               {"replicas: 3", "replicas"},
		"plain HTTP":            {"baseURL: http://stream.example.com", "baseURL"},
		"own setting":           {"config: {dataDir: /x}", "dataDir"},
		"anonymous":             {"config: {stream: {anonymous: default/x}}", "anonymous"},
		"no issuer":             {"tls: {certManager: {enabled: true}}", "issuer"},
		"no domain":             {"kafka: {external: {enabled: true}}", "domain"},
		"a line in the image":   {`image: {tag: "1\n2"}`, "tag"},
		"a line in the page":    {`metrics: {prometheusRule: {runbook: "x\ny"}}`, "runbook"},
		"grace period":          {"terminationGracePeriodSeconds: 1", "terminationGracePeriodSeconds"},
		"secret without a path": {"secrets: [{name: x}]", "secrets"},
	} {
		t.Run(name, func(t *testing.T) {
			values := map[string]any{}
			if err := yaml.Unmarshal([]byte(tc.values), &values); err != nil {
				t.Fatal(err)
			}
			if _, err := renderWithHelm(t, values); err == nil || !strings.Contains(err.Error(), tc.field) {
				t.Errorf("Helm: got %v, want an error about %s", err, tc.field)
			}
			file := filepath.Join(t.TempDir(), "values.yaml")
			if err := os.WriteFile(file, []byte(tc.values), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := freshet(t, "generate", "kubernetes", "--values", file); err == nil ||
				!strings.Contains(out, tc.field) {
				t.Errorf("freshet: got %q, %v, want an error about %s", out, err, tc.field)
			}
		})
	}
}

// TestCustomResources decodes the objects of other operators strictly, with the operators' own types.
func TestCustomResources(t *testing.T) {
	found := objects(t, generate(t, "--values", "testdata/cert-manager.yaml"))
	var certificate certmanagerv1.Certificate
	decode(t, found, "Certificate", &certificate)
	names := certificate.Spec.DNSNames
	for _, want := range []string{
		"stream.example.com", "*.acme.stream.example.com", "freshet.freshet.svc",
		"freshet-2.freshet-members.freshet.svc",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("the certificate has the names %v, without %s", names, want)
		}
	}
	var set appsv1.StatefulSet
	decode(t, found, "StatefulSet", &set)
	if i := slices.IndexFunc(set.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Secret != nil && v.Secret.SecretName == certificate.Spec.SecretName
	}); i < 0 {
		t.Errorf("the pods do not mount the secret %s of the certificate", certificate.Spec.SecretName)
	}
	var monitor monitoringv1.ServiceMonitor
	decode(t, found, "ServiceMonitor", &monitor)
	var service corev1.Service
	decode(t, map[string]any{"Service/": found["Service/freshet-members"]}, "Service", &service)
	for label, value := range monitor.Spec.Selector.MatchLabels {
		if service.Labels[label] != value {
			t.Errorf("the service has the label %s=%q, and the monitor selects %q", label, service.Labels[label], value)
		}
	}
	if job := service.Labels[monitor.Spec.JobLabel]; job != release {
		t.Errorf("the job of Prometheus is %q, want %q", job, release)
	}
	var rule monitoringv1.PrometheusRule
	decode(t, found, "PrometheusRule", &rule)
	alerts, err := freshet(t, "generate", "alerts", "--job", release, "--runbook",
		"https://stream.example.com/docs/howto/alerts.html")
	if err != nil {
		t.Fatal(err)
	}
	var want monitoringv1.PrometheusRuleSpec
	if err := yaml.UnmarshalStrict([]byte(alerts), &want); err != nil {
		t.Fatal(err)
	}
	if len(want.Groups) == 0 || !reflect.DeepEqual(rule.Spec, want) {
		t.Errorf("the rules differ from freshet generate alerts:\n%s", show(t, rule.Spec))
	}
}
