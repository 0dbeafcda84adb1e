package charts

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// decode decodes the object of a kind strictly.
func decode(t *testing.T, found map[string]any, kind string, into any) {
	t.Helper()
	for name, object := range found {
		if strings.HasPrefix(name, kind+"/") {
			text, err := yaml.Marshal(object)
			if err == nil {
				err = yaml.UnmarshalStrict(text, into)
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return
		}
	}
	t.Fatalf("the manifests have no %s", kind)
}

// newPods returns the pods of the manifests, with the bundles that the job creates.
func newPods(t *testing.T, args ...string) []*pod {
	t.Helper()
	found := objects(t, generate(t, args...))
	var set appsv1.StatefulSet
	decode(t, found, "StatefulSet", &set)
	var file corev1.ConfigMap
	decode(t, found, "ConfigMap", &file)
	n := int(*set.Spec.Replicas)
	network := newNetwork(set.Name, set.Spec.ServiceName, n)
	var bundles string
	if n > 1 {
		var job batchv1.Job
		decode(t, found, "Job", &job)
		bundles = filepath.Join(t.TempDir(), "bundles")
		// The job creates a secret instead; Unit tests of ensemblecmd check the calls.
		args := job.Spec.Template.Spec.Containers[0].Args
		for i, arg := range args {
			if arg == "--kubernetes-secret" {
				args[i], args[i+1] = "--out", bundles
			}
		}
		if out, err := freshet(t, args...); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	pods := make([]*pod, n)
	for i := range pods {
		pods[i] = newPod(t, i, network, &set.Spec.Template.Spec, file.Data["freshet.yaml"], bundles)
	}
	return pods
}

// start starts all pods at once, as the StatefulSet does, and waits until they are ready.
func start(t *testing.T, pods []*pod) {
	t.Helper()
	for _, p := range pods {
		p.start()
	}
	for _, p := range pods {
		p.awaitProbe("startup", p.main.StartupProbe)
		p.awaitProbe("readiness", p.main.ReadinessProbe)
		p.awaitProbe("liveness", p.main.LivenessProbe)
	}
}

// TestEnsembleOfManifests starts three members with the commands, variables, files and users of the pods, and
// updates them one by one as a StatefulSet does.
func TestEnsembleOfManifests(t *testing.T) {
	pods := newPods(t, "--ensemble")
	if len(pods) != 3 {
		t.Fatalf("got %d pods, want 3", len(pods))
	}
	start(t, pods)
	pods[0].exec("topic", "create", "orders")
	pods[0].produce("before")
	for i := len(pods) - 1; i >= 0; i-- {
		pods[i].stop()
		for j, other := range pods {
			if j != i {
				other.awaitProbe("readiness", other.main.ReadinessProbe)
			}
		}
		pods[(i+1)%3].produce(fmt.Sprintf("without-%d", i))
		pods[i].start()
		pods[i].awaitProbe("readiness", pods[i].main.ReadinessProbe)
	}
	status := pods[1].awaitExec(func(out string) bool { return !strings.Contains(out, "Problem") }, "ensemble", "status")
	for _, p := range pods {
		if !strings.Contains(status, p.name) {
			t.Errorf("status does not list %s:\n%s", p.name, status)
		}
	}
	got := pods[2].consume(4)
	for _, want := range []string{"before", "without-0", "without-1", "without-2"} {
		if strings.Count(got, want) != 1 {
			t.Errorf("got the messages %q, want %s once", got, want)
		}
	}
	// The commands of NOTES.txt and docs/howto/kubernetes.md.
	if link := pods[0].exec("admin", "link"); !strings.HasPrefix(link, "https://freshet.freshet.svc:8443/") {
		t.Errorf("got the link %q", link)
	}
	if text := pods[0].exec("kubeconfig", "--static-token"); !strings.Contains(text, "certificate-authority-data") {
		t.Errorf("got the kubeconfig %s", text)
	}
}

// TestSingleOfManifests starts the pod of one server, stops it as Kubernetes does, and starts it again.
func TestSingleOfManifests(t *testing.T) {
	pods := newPods(t)
	start(t, pods)
	pods[0].exec("topic", "create", "orders")
	pods[0].produce("one")
	began := time.Now()
	pods[0].stop()
	t.Logf("stopped after %s", time.Since(began).Round(time.Millisecond))
	start(t, pods)
	if got := pods[0].consume(1); !strings.Contains(got, "one") {
		t.Errorf("got the messages %q", got)
	}
}
