// Package kubernetes validates the objects of the Helm chart with the code of kube-apiserver: strict decoding,
// defaults and validation as for a create request, and the Pod Security Standard "restricted". It starts no
// server, so admission plugins, quotas and custom resources are not covered. It is a module of its own, because
// k8s.io/kubernetes needs replacements that the product must not have.
package kubernetes

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	batchvalidation "k8s.io/kubernetes/pkg/apis/batch/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	corev1conversion "k8s.io/kubernetes/pkg/apis/core/v1"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/networking"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	networkingvalidation "k8s.io/kubernetes/pkg/apis/networking/validation"
	"k8s.io/kubernetes/pkg/apis/policy"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	policyvalidation "k8s.io/kubernetes/pkg/apis/policy/validation"
	"k8s.io/kubernetes/pkg/apis/rbac"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	rbacvalidation "k8s.io/kubernetes/pkg/apis/rbac/validation"
	"k8s.io/pod-security-admission/api"
	podsecurity "k8s.io/pod-security-admission/policy"
)

// custom are the kinds of other operators; test/charts decodes them with the types of those operators.
var custom = map[string]bool{"Certificate": true, "ServiceMonitor": true, "PrometheusRule": true}

// decode decodes an object strictly and sets its defaults, as the API server does.
func decode(t *testing.T, document string) runtime.Object {
	t.Helper()
	scheme := legacyscheme.Scheme
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme,
		json.SerializerOptions{Yaml: true, Strict: true})
	codec := serializer.NewCodecFactory(scheme).DecoderToVersion(strict, runtime.InternalGroupVersioner)
	object, err := runtime.Decode(codec, []byte(document))
	if err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	return object
}

// validate returns what the API server would reject.
func validate(t *testing.T, object runtime.Object) field.ErrorList {
	t.Helper()
	switch o := object.(type) {
	case *apps.StatefulSet:
		restricted(t, &o.Spec.Template)
		return appsvalidation.ValidateStatefulSet(o, appsvalidation.StatefulSetValidationOptions{},
			pod.GetValidationOptionsFromPodTemplate(&o.Spec.Template, nil))
	case *batch.Job:
		restricted(t, &o.Spec.Template)
		// The API server creates the selector from the UID.
		o.UID = "5d0a9e8e-0000-4000-8000-000000000000"
		labels := map[string]string{
			batch.ControllerUidLabel: string(o.UID), batch.LegacyControllerUidLabel: string(o.UID),
			batch.JobNameLabel: o.Name, batch.LegacyJobNameLabel: o.Name,
		}
		for key, value := range labels {
			o.Spec.Template.Labels[key] = value
		}
		o.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{batch.ControllerUidLabel: string(o.UID)}}
		return batchvalidation.ValidateJobCreate(o, batchvalidation.JobValidationOptions{
			PodValidationOptions:  pod.GetValidationOptionsFromPodTemplate(&o.Spec.Template, nil),
			RequirePrefixedLabels: true,
		})
	case *core.Service:
		if o.Spec.ClusterIP != "" { // the API server does this before it validates
			o.Spec.ClusterIPs = []string{o.Spec.ClusterIP}
		}
		return corevalidation.ValidateServiceCreate(o)
	case *core.ServiceAccount:
		return corevalidation.ValidateServiceAccount(o)
	case *core.ConfigMap:
		return corevalidation.ValidateConfigMap(o)
	case *networking.NetworkPolicy:
		return networkingvalidation.ValidateNetworkPolicy(o, networkingvalidation.NetworkPolicyValidationOptions{})
	case *policy.PodDisruptionBudget:
		return policyvalidation.ValidatePodDisruptionBudget(o, policyvalidation.PodDisruptionBudgetValidationOptions{})
	case *rbac.Role:
		return rbacvalidation.ValidateRole(o)
	case *rbac.RoleBinding:
		return rbacvalidation.ValidateRoleBinding(o)
	}
	t.Fatalf("no validation for %T; add it", object)
	return nil
}

// restricted checks a pod against the strictest Pod Security Standard.
func restricted(t *testing.T, template *core.PodTemplateSpec) {
	t.Helper()
	var external corev1.PodTemplateSpec
	if err := corev1conversion.Convert_core_PodTemplateSpec_To_v1_PodTemplateSpec(template, &external, nil); err != nil {
		t.Fatal(err)
	}
	evaluator, err := podsecurity.NewEvaluator(podsecurity.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	result := podsecurity.AggregateCheckResults(evaluator.EvaluatePod(level, &external.ObjectMeta, &external.Spec))
	if !result.Allowed {
		t.Errorf("Pod Security Standard restricted: %s", result.ForbiddenDetail())
	}
}

// manifests returns what `freshet generate kubernetes` prints for a file of values.
func manifests(t *testing.T, file string) string {
	t.Helper()
	binary := os.Getenv("FRESHET_BIN")
	if binary == "" {
		t.Fatal("FRESHET_BIN is not set; run make test-charts")
	}
	out, err := exec.CommandContext(t.Context(), binary, "generate", "kubernetes", "--values", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestAPIServerAcceptsManifests(t *testing.T) {
	files, err := filepath.Glob("../testdata/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("found %d files of values: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			kinds := map[string]int{}
			for _, document := range strings.Split(manifests(t, file), "\n---\n")[1:] {
				_, kind, _ := strings.Cut("\n"+document, "\nkind: ")
				kind, _, _ = strings.Cut(kind, "\n")
				kinds[kind]++
				if custom[kind] {
					continue
				}
				for _, problem := range validate(t, decode(t, document)) {
					t.Errorf("%s: %v", kind, problem)
				}
			}
			if kinds["StatefulSet"] != 1 || kinds["Service"] < 2 {
				t.Errorf("got the objects %v", kinds)
			}
		})
	}
}

// TestInvalidManifestsAreFound checks that the test finds what an API server rejects.
func TestInvalidManifestsAreFound(t *testing.T) {
	text := manifests(t, "../testdata/ensemble.yaml")
	for name, change := range map[string][2]string{
		"port":          {"containerPort: 7443", "containerPort: 744300"},
		"mount":         {"{name: tmp, mountPath: /tmp}", "{name: other, mountPath: /tmp}"},
		"selector":      {"serviceName: freshet-members", "serviceName: Freshet"},
		"restart":       {"restartPolicy: OnFailure", "restartPolicy: Always"},
		"sub path":      {"subPathExpr: $(POD_NAME).bundle", "subPathExpr: ../$(POD_NAME).bundle"},
		"whole disrupt": {"maxUnavailable: 1", "maxUnavailable: -1"},
	} {
		changed := strings.ReplaceAll(text, change[0], change[1])
		if changed == text {
			t.Errorf("%s: the manifests have no %q", name, change[0])
		}
		found := false
		for _, document := range strings.Split(changed, "\n---\n")[1:] {
			found = found || len(validate(t, decode(t, document))) > 0
		}
		if !found {
			t.Errorf("%s: the change was accepted", name)
		}
	}
}
