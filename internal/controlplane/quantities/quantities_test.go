package quantities_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/quantities"
)

func object(quantity string) string {
	return `{"spec":{"broker":{"resources":{"cpu":` + quantity + `}}}}`
}

func TestCheck(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		body string // JSON, which is YAML too
		want string // part of the error
	}{
		"small":               {object(`"400m"`), ""},
		"as specified":        {object(`"1.6Gi"`), ""},
		"exa":                 {object(`"5E"`), ""},
		"exbi":                {object(`"5Ei"`), ""},
		"exponent":            {object(`"12e6"`), ""},
		"largest exponent":    {object(`"1e30"`), ""},
		"negative exponent":   {object(`"1e-9"`), ""},
		"number":              {object(`4294967296`), ""},
		"long":                {object(`"` + strings.Repeat("1", 64) + `"`), ""},
		"no quantity at all":  {object(`"lots of it 1e99"`), "exponent"},
		"too large":           {object(`"1e31"`), "spec.broker.resources.cpu: exponent"},
		"too small":           {object(`"1e-31"`), "exponent"},
		"without end":         {object(`"1e999999999"`), "exponent"},
		"without beginning":   {object(`"1e-999999999"`), "exponent"},
		"beyond counting":     {object(`"1e99999999999999999999999"`), "exponent"},
		"upper case":          {object(`"1E999"`), "exponent"},
		"with zeros in front": {object(`"1e0000999"`), "exponent"},
		"with a sign":         {object(`"-1e+999"`), "exponent"},
		"as a number":         {object(`1e999`), "exponent"},
		"hidden":              {object(`"1\u0065999999"`), "exponent"},
		"key hidden":          {strings.Replace(object(`"1e999"`), "cpu", `\u0063pu`, 1), "exponent"},
		"object hidden":       {strings.Replace(object(`"1e999"`), "resources", `\u0072esources`, 1), "exponent"},
		"no object for them":  {`{"metadata":{"uid":"1e999999-0000"},"spec":{"cpu":"1e999"}}`, ""},
		"too long":            {object(`"` + strings.Repeat("1", 65) + `"`), "64 characters"},
		"long number":         {object(strings.Repeat("1", 65)), "64 characters"},
		"memory":              {strings.Replace(object(`"1e999"`), "cpu", "memory", 1), "resources.memory"},
		"disk":                {strings.Replace(object(`"1e999"`), "cpu", "ledgerDisk", 1), "resources.ledgerDisk"},
		"other disk": {
			strings.Replace(object(`"1e999"`), "cpu", "journalDisk", 1),
			"resources.journalDisk",
		},
		"after a list": {`{"a":[{"b":[1,2]},{}],"resources":{"x":{},"cpu":"1e999"}}`, "exponent"},
		"somewhere else": {
			`{"metadata":{"annotations":{"cpu":"1e999"}},"spec":{"config":{"custom":{"cpu":"1e999999"}}}}`,
			"",
		},
		"in the midst of letters": {`{"metadata":{"uid":"1e999999-0000"},"resources":{"note":"1e999"}}`, ""},
		"malformed before":        {`{"a":}` + object(`"1e999"`), ""},
		"nothing":                 {``, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect(t, "JSON", quantities.CheckJSON([]byte(tc.body)), tc.want)
			if !strings.Contains(name, "number") { // the YAML parser reads numbers itself
				expect(t, "YAML", quantities.CheckYAML([]byte(tc.body)), tc.want)
			}
		})
	}
}

func expect(t *testing.T, form string, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
		t.Errorf("%s: got %v, want %q", form, err, want)
	}
}

func TestDuplicateKeysAreAllChecked(t *testing.T) {
	t.Parallel()
	body := `{"resources":{"cpu":"1e-999999999","cpu":"1"}}`
	expect(t, "JSON", quantities.CheckJSON([]byte(body)), "exponent")
}

func TestYAML(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"resources:\n  cpu: 1.6Gi\n":                "",
		"resources:\n  cpu: \"1e999\"\n":            "exponent",
		"resources: {cpu: '1e999'}":                 "exponent",
		"resources:\n  cpu: \"1\\x65999\"\n":        "exponent",
		"resources:\n  cpu: \"1e\\\n    999999\"\n": "exponent",
		"a: &a 1e999x\nresources: {cpu: *a}":        "",
		"a: &a '1e999'\nresources: {cpu: *a}":       "exponent",
		"a: [b":                                     "",
	} {
		expect(t, body, quantities.CheckYAML([]byte(body)), want)
	}
}

// protobufOf encodes a cluster with a quantity of this text, which may be invalid.
func protobufOf(text string) []byte {
	field := func(number byte, content string) string {
		out := []byte{number<<3 | 2}
		for n := len(content); ; n >>= 7 {
			if n < 0x80 {
				out = append(out, byte(n))
				break
			}
			out = append(out, byte(n)|0x80)
		}
		return string(out) + content
	}
	quantity := field(1, text)
	spec := field(1, "i") + field(7, field(3, field(1, field(1, "1"))+field(2, quantity)))
	return []byte("k8s\x00" + field(1, field(1, "cloud.vendor.io/v1alpha1")+field(2, "MessagingCluster")) +
		field(2, field(1, "")+field(2, spec)))
}

func TestProtobuf(t *testing.T) {
	t.Parallel()
	expect(t, "good", quantities.CheckProtobuf(protobufOf("1.6Gi")), "")
	expect(t, "large", quantities.CheckProtobuf(protobufOf("1e999999999")), "exponent")
	expect(t, "long", quantities.CheckProtobuf(protobufOf(strings.Repeat("1", 300))), "64 characters")
	expect(t, "cut short", quantities.CheckProtobuf(protobufOf("1e999999999")[:40]), "")
	expect(t, "other", quantities.CheckProtobuf([]byte("1e999")), "")

	// The helper above encodes like the real types.
	var cluster v1alpha1.MessagingCluster
	cluster.Spec.InstanceName = "i"
	cluster.Spec.Broker.Resources = &v1alpha1.BrokerResources{
		CPU:    resource.MustParse("1"),
		Memory: resource.MustParse("1e12"),
	}
	raw, err := cluster.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var out v1alpha1.MessagingCluster
	body := protobufOf("1e12")
	if err := out.Unmarshal(body[strings.Index(string(body), "MessagingCluster")+len("MessagingCluster")+
		2:]); err != nil {
		t.Fatal(err)
	}
	if out.Spec.Broker.Resources.Memory.Cmp(cluster.Spec.Broker.Resources.Memory) != 0 {
		t.Errorf("decoded resources: got %+v, want those of %q", out.Spec.Broker.Resources, raw)
	}
}

// FuzzCheck checks that every accepted quantity can be parsed and compared quickly.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		"1", "1.6Gi", "1e30", "1e-30", "1e31", "9e", "-0.5m", "+1E5", "0x1p9", "1e1e9",
		" 1e999 ", "1e 999", strings.Repeat("9", 64), "1e\t999",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Skip("not a text")
		}
		began := time.Now()
		if quantities.CheckJSON([]byte(object(string(quoted)))) != nil ||
			quantities.CheckProtobuf(protobufOf(text)) != nil {
			return
		}
		quantity, err := resource.ParseQuantity(strings.TrimSpace(text))
		if err == nil {
			_ = quantity.Cmp(resource.MustParse("1.6Gi"))
			_ = fmt.Sprint(quantity.String(), quantity.Value(), quantity.MilliValue())
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%q took %s, want at most a minute", text, took)
		}
	})
}
