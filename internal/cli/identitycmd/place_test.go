package identitycmd

import (
	"encoding/json"
	"testing"
)

func TestParsePlace(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		"topic=public/default/orders-*": `{"common":{"namespace":"default","tenant":"public","topic":"orders-*"}}`,
		"namespace=public/default":      `{"common":{"namespace":"default","tenant":"public"}}`,
		"namespace=default":             `{"common":{"namespace":"default"}}`,
		"subscription=me":               `{"messaging":{"subscription":{"name":"me"}}}`,
		"domain=persistent":             `{"messaging":{"topic":{"domain":"persistent"}}}`,
		"subject=orders-value":          `{"schema":{"subject":"orders-value"}}`,
		"account=ci":                    `{"cloud":{"serviceAccount":{"name":"ci"}}}`,
		"key=web":                       `{"cloud":{"apikey":{"name":"web"}}}`,
	} {
		p, err := parsePlace([]string{words})
		if err != nil {
			t.Errorf("%s: %v", words, err)
			continue
		}
		if got, err := json.Marshal(p.restriction()); err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v; want %s", words, got, err, want)
		}
	}
	for _, words := range [][]string{
		{"topic"},
		{"topic="},
		{"planet=earth"},
		{"topic=a/b"},
		{"namespace=a/b/c"},
		{"topic=t1", "topic=t2"},
		{"tenant=x", "topic=y/z/t"},
	} {
		if p, err := parsePlace(words); err == nil {
			t.Errorf("%v: got %v, want an error", words, p)
		}
	}
}

func TestPlaceHolds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		rule, at place
		want     bool
	}{
		{place{}, place{"topic": "a"}, true},
		{place{"topic": "a"}, place{"topic": "a", "tenant": "t"}, true},
		{place{"topic": "a"}, place{"topic": "b"}, false},
		{place{"topic": "a*"}, place{"topic": "ab"}, true},
		{place{"topic": "a*"}, place{}, false},
		{place{"topic": "a", "instance": "i"}, place{"topic": "a"}, false},
	} {
		if got := tc.rule.holds(tc.at); got != tc.want {
			t.Errorf("%v at %v: got %v, want %v", tc.rule, tc.at, got, tc.want)
		}
	}
}

func TestBindingName(t *testing.T) {
	t.Parallel()
	ci := []map[string]any{{"name": "ci"}}
	mail := []map[string]any{{"name": "Me@Example.com"}}
	if got := bindingName("org-admin", ci, place{}); got != "org-admin.ci" {
		t.Errorf("got %s, want org-admin.ci", got)
	}
	one, other := bindingName("org-admin", ci, place{"topic": "a"}), bindingName("org-admin", ci, place{"topic": "b"})
	if one == other || one != bindingName("org-admin", ci, place{"topic": "a"}) {
		t.Errorf("got %s and %s, want a different and deterministic name for each scope", one, other)
	}
	if got := bindingName("org-admin", mail, place{}); got != "org-admin.me-example.com."+got[len(got)-8:] {
		t.Errorf("got %s, want a valid name with a hash", got)
	}
}
