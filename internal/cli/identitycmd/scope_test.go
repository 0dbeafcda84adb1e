package identitycmd

import (
	"encoding/json"
	"testing"
)

func TestParseScope(t *testing.T) {
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
		p, err := parseScope([]string{words})
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
		if p, err := parseScope(words); err == nil {
			t.Errorf("%v: got %v, want an error", words, p)
		}
	}
}

func TestScopeCovers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		rule, at scope
		want     bool
	}{
		{scope{}, scope{"topic": "a"}, true},
		{scope{"topic": "a"}, scope{"topic": "a", "tenant": "t"}, true},
		{scope{"topic": "a"}, scope{"topic": "b"}, false},
		{scope{"topic": "a*"}, scope{"topic": "ab"}, true},
		{scope{"topic": "a*"}, scope{}, false},
		{scope{"topic": "a", "instance": "i"}, scope{"topic": "a"}, false},
	} {
		if got := tc.rule.covers(tc.at); got != tc.want {
			t.Errorf("%v at %v: got %v, want %v", tc.rule, tc.at, got, tc.want)
		}
	}
}

func TestBindingName(t *testing.T) {
	t.Parallel()
	ci := []map[string]any{{"name": "ci"}}
	mail := []map[string]any{{"name": "Me@Example.com"}}
	if got := bindingName("org-admin", ci, scope{}); got != "org-admin.ci" {
		t.Errorf("got %s, want org-admin.ci", got)
	}
	one, other := bindingName("org-admin", ci, scope{"topic": "a"}), bindingName("org-admin", ci, scope{"topic": "b"})
	if one == other || one != bindingName("org-admin", ci, scope{"topic": "a"}) {
		t.Errorf("got %s and %s, want a different and deterministic name for each scope", one, other)
	}
	if got := bindingName("org-admin", mail, scope{}); got != "org-admin.me-example.com."+got[len(got)-8:] {
		t.Errorf("got %s, want a valid name with a hash", got)
	}
}
