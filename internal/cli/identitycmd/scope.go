package identitycmd

import (
	"fmt"
	"slices"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/cli/hint"
)

// scope is the scope of a role: names or patterns by the words of --on.
type scope map[string]string

// scopeWord is a word of --on, with its field in a rules review and its path in a
// RoleBinding.
type scopeWord struct {
	word, review string
	binding      []string
}

// scopeWords are the words of --on, in the order in which scopes are printed.
var scopeWords = []scopeWord{
	{"instance", "instance", []string{"common", "instance"}},
	{"cluster", "cluster", []string{"common", "cluster"}},
	{"tenant", "tenant", []string{"common", "tenant"}},
	{"namespace", "namespace", []string{"common", "namespace"}},
	{"domain", "topicDomain", []string{"messaging", "topic", "domain"}},
	{"topic", "topic", []string{"common", "topic"}},
	{"subscription", "subscription", []string{"messaging", "subscription", "name"}},
	{"subject", "subject", []string{"schema", "subject"}},
	{"account", "serviceAccount", []string{"cloud", "serviceAccount", "name"}},
	{"key", "apiKey", []string{"cloud", "apikey", "name"}},
	{"secret", "secret", []string{"cloud", "secret", "name"}},
}

// parseScope parses instance=prod,topic=public/default/orders-*. A topic can be prefixed
// with its tenant and namespace, and a namespace with its tenant.
func parseScope(words []string) (scope, error) {
	p := scope{}
	set := func(word, value string) error {
		if before, ok := p[word]; ok && before != value {
			return errs.Newf(errs.Invalid, "--on has %s=%s and %s=%s; a role binding has one scope", word,
				before, word, value)
		}
		p[word] = value
		return nil
	}
	for _, entry := range words {
		word, value, ok := strings.Cut(entry, "=")
		known := slices.ContainsFunc(scopeWords, func(w scopeWord) bool { return w.word == word })
		if !ok || !known || value == "" {
			return nil, hint.Add(errs.Newf(errs.Invalid, "--on value %q is not valid", entry),
				"Use instance=, cluster=, tenant=, namespace=, topic=, subscription=, subject=, account= or key= "+
					"and a name, or a prefix and *.")
		}
		parts := strings.Split(value, "/")
		names := map[string][]string{
			"topic":     {"tenant", "namespace", "topic"},
			"namespace": {"tenant", "namespace"},
		}[word]
		switch {
		case len(parts) == 1 || names == nil:
			names, parts = []string{word}, []string{value}
		case len(parts) != len(names):
			return nil, errs.Newf(errs.Invalid, "%s %q is not valid; write the name alone, or %s", word, value,
				strings.ToUpper(strings.Join(names, "/")))
		}
		for i, name := range names {
			if err := set(name, parts[i]); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// restriction returns the scope as resourceNameRestriction of a RoleBinding, nil for the
// whole organization.
func (p scope) restriction() map[string]any {
	var whole map[string]any
	for _, w := range scopeWords {
		value, ok := p[w.word]
		if !ok {
			continue
		}
		if whole == nil {
			whole = map[string]any{}
		}
		at := whole
		for _, name := range w.binding[:len(w.binding)-1] {
			next, ok := at[name].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[name] = next
			}
			at = next
		}
		at[w.binding[len(w.binding)-1]] = value
	}
	return whole
}

// String returns the scope in the syntax of --on.
func (p scope) String() string {
	var words []string
	for _, w := range scopeWords {
		if value, ok := p[w.word]; ok {
			words = append(words, fmt.Sprintf("%s=%s", w.word, value))
		}
	}
	if len(words) == 0 {
		return "everything in the organization"
	}
	return strings.Join(words, ",")
}

// scopeOf converts a restriction of a rules review.
func scopeOf(restriction map[string]string) scope {
	p := scope{}
	for _, w := range scopeWords {
		if value := restriction[w.review]; value != "" {
			p[w.word] = value
		}
	}
	return p
}

// covers reports whether a rule with the scope p applies to at.
func (p scope) covers(at scope) bool {
	for word, pattern := range p {
		value := at[word]
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
			if value == "" || !strings.HasPrefix(value, prefix) {
				return false
			}
		} else if value != pattern {
			return false
		}
	}
	return true
}
