package apiserver_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/v1alpha1"
)

func TestQuantitiesAreCanonical(t *testing.T) {
	t.Parallel()
	a := start(t)
	tests := []struct{ cpu, memory, wantCPU, wantMemory string }{
		{`"400m"`, `"1.6Gi"`, "400m", "1717986918400m"}, // the smallest size (docs/spec/resources.md#quantities)
		{`"0.4"`, `"4Gi"`, "400m", "4Gi"},
		{`"1000m"`, `"4096Mi"`, "1", "4Gi"},
		{`1`, `4294967296`, "1", "4294967296"},
		{`"2"`, `"4G"`, "2", "4G"},
		{`"1.5"`, `"8e9"`, "1500m", "8e9"},
		{`"16"`, `"64Gi"`, "16", "64Gi"},
		{`"2500m"`, `"2.5Gi"`, "2500m", "2560Mi"},
	}
	for i, tc := range tests {
		resources := fmt.Sprintf(`{"cpu":%s,"memory":%s}`, tc.cpu, tc.memory)
		item := fmt.Sprint("messagingclusters/q", i)
		a.post("messagingclusters", fmt.Sprintf(`{"metadata":{"name":"q%d"},"spec":{"instanceName":"i",`+
			`"location":"local","broker":{"resources":%s},"storage":{"resources":%[2]s}}}`,
			i, resources)).want(http.StatusCreated)
		for _, part := range []string{"broker", "storage"} {
			a.get(item).want(http.StatusOK).has("spec."+part+".resources.cpu", tc.wantCPU,
				"spec."+part+".resources.memory", tc.wantMemory)
		}
		// The sent and the returned quantity are equal: writing either changes nothing.
		a.patch(item, mergePatch, fmt.Sprintf(`{"spec":{"broker":{"resources":%s}}}`, resources)).want(
			http.StatusOK).has("metadata.generation", "1")
		a.patch(item, mergePatch, fmt.Sprintf(`{"spec":{"broker":{"resources":{"cpu":%q,"memory":%q}}}}`, tc.wantCPU,
			tc.wantMemory)).want(http.StatusOK).has("metadata.generation", "1")
	}
	for _, bad := range []string{`"lots"`, `"1.6GB"`, `""`, `"1e"`, `{}`, `[]`, `true`, `"1 Gi"`} {
		a.post("messagingclusters", `{"metadata":{"name":"bad"},"spec":{"instanceName":"i","location":"local",`+
			`"broker":{"resources":{"cpu":"1","memory":`+bad+`}}}}`).
			want(http.StatusBadRequest, http.StatusUnprocessableEntity).failure()
	}
}

// TestOversizedQuantities checks that oversized quantities are rejected before they are parsed, in
// every format.
func TestOversizedQuantities(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("MessagingCluster")
	a.post(k.plural, k.object("c", `"annotations":{"bomb":"1e-999999999"}`)).want(http.StatusCreated)
	for _, size := range []string{"1e999999999", "1e-999999999", strings.Repeat("9", 1<<18)} {
		spec := `{"instanceName":"i","location":"local","broker":{"resources":{"cpu":"1","memory":"` + size + `"}}}`
		resources := `{"spec":{"broker":{"resources":{"cpu":"1","memory":"` + size + `"}}}}`
		for name, answer := range map[string]reply{
			"create":    a.post(k.plural, k.with(spec, "d")),
			"strict":    a.post(k.plural+"?fieldValidation=Strict", k.with(spec, "d")),
			"YAML":      a.post(k.plural, k.with(spec, "d"), "Content-Type", yamlType),
			"put":       a.put(k.plural+"/c", k.with(spec, "c")),
			"post":      a.post(k.plural+"/c", k.with(spec, "c"), "Content-Type", "text/plain"),
			"status":    a.put(k.plural+"/c/status", k.with(spec, "c")),
			"merge":     a.patch(k.plural+"/c", mergePatch, resources),
			"strategic": a.patch(k.plural+"/c", strategic, resources),
			"apply":     a.patch(k.plural+"/c?fieldManager=me&force=true", applyPatch, k.apply("c", spec)),
			"json patch": a.patch(k.plural+"/c", jsonPatch,
				`[{"op":"add","path":"/spec/broker/resources","value":{"cpu":"1","memory":"`+size+`"}}]`),
			"json copy": a.patch(k.plural+"/c", jsonPatch,
				`[{"op":"add","path":"/spec/broker/resources","value":{"cpu":"1","memory":"2Gi"}},`+
					`{"op":"copy","from":"/metadata/annotations/bomb","path":"/spec/broker/resources/memory"}]`),
		} {
			if message := answer.want(http.StatusBadRequest,
				http.StatusUnprocessableEntity).failure().Message; !strings.Contains(message, "quantity") {
				t.Errorf("%s: message does not mention the quantity: %.300s", name, message)
			}
		}
	}
}

// TestQuantitiesRoundTrip checks that a quantity survives JSON and protobuf, and that its canonical
// form is equal to it and stable.
func TestQuantitiesRoundTrip(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // not a secret
	suffixes := []string{"", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", "e3", "e9", "u", "n"}
	for range 5000 {
		text := fmt.Sprintf("%d", random.Int64N(1_000_000))
		if random.IntN(2) == 0 {
			text += fmt.Sprintf(".%d", random.IntN(1_000_000))
		}
		text += suffixes[random.IntN(len(suffixes))]
		given, err := resource.ParseQuantity(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		in := &v1alpha1.MessagingCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "c"},
			Spec: v1alpha1.MessagingClusterSpec{
				Broker: v1alpha1.Broker{Resources: &v1alpha1.BrokerResources{CPU: given, Memory: given}},
			},
		}
		asJSON, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var fromJSON, fromProtobuf v1alpha1.MessagingCluster
		if err := json.Unmarshal(asJSON, &fromJSON); err != nil {
			t.Fatal(err)
		}
		binary, err := in.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if err := fromProtobuf.Unmarshal(binary); err != nil {
			t.Fatal(err)
		}
		for name, out := range map[string]resource.Quantity{
			"JSON":     fromJSON.Spec.Broker.Resources.Memory,
			"protobuf": fromProtobuf.Spec.Broker.Resources.Memory,
		} {
			canonical := out.String()
			again, err := resource.ParseQuantity(canonical)
			if err != nil || again.String() != canonical || out.Cmp(given) != 0 || again.Cmp(given) != 0 {
				t.Errorf("%s through %s: got %s, and from that %s (%v)", text, name, canonical, again.String(), err)
			}
		}
	}
}
