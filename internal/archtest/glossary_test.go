package archtest

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// glossaryAllowed lists the packages in which a word that the glossary keeps out of identifiers has another,
// established meaning.
var glossaryAllowed = map[string][]string{
	"group": {
		"api/...", "client/resources", "internal/controlplane/...", // API groups of Kubernetes
		"internal/registry/protobuf/...",   // groups of Protobuf messages
		"internal/ops/telemetry",           // slog.Handler.WithGroup
		"internal/ensemble/natsserver/...", // Raft groups of NATS
		// Consumer groups of the Kafka protocol.
		"client", "internal/broker/...", "internal/cli/messagecmd", "internal/dataplane/...",
		"internal/ensemble/sharded", "internal/server/...", "internal/surfaces/...",
	},
	"stream": {
		"api/...", "internal/dataplane/...", "internal/controlplane/kinds/messagingcluster", // the configuration's word
		"client", "internal/surfaces/messageapi", // responses of any length
		"internal/ensemble/...", "internal/surfaces/systemapi", // streams of NATS; the addresses of members
		"internal/cli/...",               // standard input and output
		"internal/registry/protobuf/...", // streaming calls of a Protobuf service
	},
	"place": {"internal/cli/authcmd"}, // the flag --in-place
}

// notPartOfTheProduct are packages whose names the glossary does not check.
var notPartOfTheProduct = []string{"test/...", "bench/...", "hack/..."}

// forbiddenWords returns the words in the column never of the glossary that are in backquotes.
func forbiddenWords(t *testing.T) map[string]bool {
	t.Helper()
	words := map[string]bool{}
	rows := tableRows(section(t, contributing(t), "## Glossary"))
	if len(rows) < 10 {
		t.Errorf("the glossary has %d rows, want at least 10", len(rows))
	}
	for _, row := range rows {
		if len(row) != 3 {
			t.Errorf("row %q of the glossary: want word, meaning and never", row)
			continue
		}
		for _, word := range spans(row[2]) {
			words[word] = true
		}
	}
	return words
}

// wordsOf splits an identifier into its words, in lower case.
func wordsOf(identifier string) (words []string) {
	letters := []rune(identifier)
	start := 0
	add := func(end int) {
		if word := strings.Trim(string(letters[start:end]), "_"); word != "" {
			words = append(words, strings.ToLower(word))
		}
		start = end
	}
	for i := 1; i < len(letters); i++ {
		begins := unicode.IsUpper(letters[i]) && (!unicode.IsUpper(letters[i-1]) ||
			i+1 < len(letters) && unicode.IsLower(letters[i+1]))
		if begins || letters[i] == '_' {
			add(i)
		}
	}
	add(len(letters))
	return words
}

// forbiddenIn returns the forbidden word in an identifier, in the singular or plural, or "".
func forbiddenIn(identifier string, forbidden map[string]bool) string {
	for _, word := range wordsOf(identifier) {
		if forbidden[word] {
			return word
		}
		if singular := strings.TrimSuffix(word, "s"); forbidden[singular] {
			return singular
		}
	}
	return ""
}

// TestGlossary checks that no declared name contains a word that the glossary in CONTRIBUTING.md keeps out
// of the code.
func TestGlossary(t *testing.T) {
	t.Parallel()
	forbidden := forbiddenWords(t)
	for word := range glossaryAllowed {
		if !forbidden[word] {
			t.Errorf("glossaryAllowed contains %q, which the glossary does not forbid; remove it", word)
		}
	}
	used := map[string]bool{}
	for _, p := range handWritten(t) {
		if matchesAny(notPartOfTheProduct, p.modulePath()) {
			continue
		}
		for _, s := range sources(t, p, false) {
			for _, ident := range declaredIdentifiers(s.file) {
				word := forbiddenIn(ident.Name, forbidden)
				if word == "" {
					continue
				}
				at := slices.IndexFunc(glossaryAllowed[word], func(pattern string) bool {
					return matches(pattern, p.modulePath())
				})
				if at >= 0 {
					used[word+" "+glossaryAllowed[word][at]] = true
					continue
				}
				t.Errorf("%s: name %s contains %q, which the glossary of CONTRIBUTING.md keeps out of the code",
					s.fset.Position(ident.Pos()), ident.Name, word)
			}
		}
	}
	for word, patterns := range glossaryAllowed {
		for _, pattern := range patterns {
			if !used[word+" "+pattern] {
				t.Errorf("glossaryAllowed has %s for %q, but no name there contains it; remove it", pattern, word)
			}
		}
	}
}

// declaredIdentifiers returns the names of types, functions, methods, fields, constants and package
// variables, also of types within functions. It leaves out local variables and parameters.
func declaredIdentifiers(file *ast.File) (list []*ast.Ident) {
	for _, d := range declaredNames(file) {
		list = append(list, d.ident)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.TypeSpec:
			list = append(list, x.Name)
		case *ast.StructType:
			for _, field := range x.Fields.List {
				list = append(list, field.Names...)
			}
		}
		return true
	})
	slices.SortFunc(list, func(a, b *ast.Ident) int { return int(a.Pos() - b.Pos()) })
	return slices.Compact(list)
}

// TestGlossaryCanFail calls wordsOf and forbiddenIn with names that they must report and names that they
// must accept.
func TestGlossaryCanFail(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"takePatience": {"take", "patience"}, "HTTPServer": {"http", "server"}, "max_group": {"max", "group"},
		"ID": {"id"}, "JSONSchemaID": {"json", "schema", "id"},
	} {
		if got := wordsOf(name); !slices.Equal(got, want) {
			t.Errorf("wordsOf(%q): got %q, want %q", name, got, want)
		}
	}
	forbidden := map[string]bool{"place": true, "told": true}
	for name, want := range map[string]string{
		"GroupPlace": "place", "places": "place", "isTold": "told", "replace": "", "placeholder": "", "Total": "",
	} {
		if got := forbiddenIn(name, forbidden); got != want {
			t.Errorf("forbiddenIn(%q): got %q, want %q", name, got, want)
		}
	}
}
