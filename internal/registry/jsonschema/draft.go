package jsonschema

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	metaschema "github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"freshet/internal/registry/jsontree"
)

// draft is a published version of JSON Schema, in order of age.
type draft uint8

const (
	draft4 draft = iota
	draft6
	draft7
	draft2019
	draft2020
)

var draftInfo = [...]struct {
	name    string
	mark    string // the part of the $schema URI that identifies the draft
	url     string
	library *metaschema.Draft
}{
	draft4: {"draft-04", "/draft-04/", "http://json-schema.org/draft-04/schema", metaschema.Draft4},
	draft6: {"draft-06", "/draft-06/", "http://json-schema.org/draft-06/schema", metaschema.Draft6},
	draft7: {"draft-07", "/draft-07/", "http://json-schema.org/draft-07/schema", metaschema.Draft7},
	draft2019: {
		"draft 2019-09", "/draft/2019-09/", "https://json-schema.org/draft/2019-09/schema",
		metaschema.Draft2019,
	},
	draft2020: {
		"draft 2020-12", "/draft/2020-12/", "https://json-schema.org/draft/2020-12/schema",
		metaschema.Draft2020,
	},
}

func (d draft) String() string { return draftInfo[d].name }

// modern reports whether d is a draft in which other keywords next to $ref have an effect.
func (d draft) modern() bool { return d >= draft2019 }

// idKeyword returns the keyword that identifies a schema.
func (d draft) idKeyword() string {
	if d == draft4 {
		return "id"
	}
	return "$id"
}

// draftOf returns the draft of $schema. As in Confluent Schema Registry, the default is
// draft-07, also for an unknown draft.
func draftOf(root *jsontree.Value) draft {
	url, _ := root.GetText("$schema")
	if host, ok := strings.CutPrefix(trimScheme(url), "json-schema.org"); ok {
		for d, info := range draftInfo {
			if strings.HasPrefix(host, info.mark) {
				return draft(d)
			}
		}
	}
	return draft7
}

// vocabularies are the parts of the modern metaschemas.
var vocabularies = map[draft][]string{
	draft2019: {"core", "applicator", "validation", "meta-data", "format", "content"},
	draft2020: {
		"core", "applicator", "unevaluated", "validation", "meta-data",
		"format-annotation", "format-assertion", "content",
	},
}

// metaschemaURL returns the canonical URI of a published metaschema, if uri, without its
// fragment, is one with http or https.
func metaschemaURL(uri string) (string, bool) {
	for d, info := range draftInfo {
		if trimScheme(uri) == trimScheme(info.url) {
			return info.url, true
		}
		part, ok := strings.CutPrefix(trimScheme(uri), "json-schema.org"+info.mark+"meta/")
		if ok && slices.Contains(vocabularies[draft(d)], part) {
			return "https://json-schema.org" + info.mark + "meta/" + part, true
		}
	}
	return "", false
}

func trimScheme(url string) string {
	if rest, ok := strings.CutPrefix(url, "http://"); ok {
		return rest
	}
	return strings.TrimPrefix(url, "https://")
}

// metaschemas has the compiled metaschema of each draft, compiled on first use.
var metaschemas = func() (compiled [len(draftInfo)]func() (*metaschema.Schema, error)) {
	for d := range compiled {
		compiled[d] = sync.OnceValues(func() (*metaschema.Schema, error) {
			c := metaschema.NewCompiler()
			c.DefaultDraft(draftInfo[d].library)
			c.UseLoader(noLoader{})
			c.UseRegexpEngine(lenientRegexp)
			for _, name := range []string{"uri", "uri-reference"} {
				// resolve.go checks URIs.
				c.RegisterFormat(&metaschema.Format{Name: name, Validate: func(any) error { return nil }})
			}
			return c.Compile(draftInfo[d].url)
		})
	}
	return compiled
}()

// noLoader is a loader that loads nothing. The library has the metaschemas built in and does
// not load them.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%q is not a registered reference", url)
}

// lenientRegexp compiles the patterns of the metaschemas. The library also calls it for
// users' patterns ("format": "regex"), but compilePattern checks those.
func lenientRegexp(pattern string) (metaschema.Regexp, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return regexp.MustCompile(""), nil //nolint:nilerr // a pattern that Go cannot compile matches everything
	}
	return re, nil
}

// maxMetaWork bounds the number of objects that are validated with a modern metaschema. Deep
// objects count more: for dynamic references the library searches all enclosing levels of
// each object, and it cannot be interrupted.
const (
	maxMetaWork  = 100_000
	metaWorkStep = 64 // levels of nesting that count as one object
)

// checkMetaschema returns an error if root is not a valid schema of draft d.
func checkMetaschema(d draft, root *jsontree.Value, sums digests) error {
	if d.modern() && metaWork(root, 1) > maxMetaWork {
		return fmt.Errorf("%w: it has more than %d subschemas of %s, of which those below level %d count twice, and "+
			"so on; make the schema smaller, or use draft-07",
			ErrTooComplex, maxMetaWork, d, metaWorkStep)
	}
	meta, err := metaschemas[d]()
	if err != nil {
		return fmt.Errorf("compiling the metaschema of %s: %w", d, err)
	}
	err = meta.Validate(sums.plainSchema(root, oneSchema))
	if invalid, ok := errors.AsType[*metaschema.ValidationError](err); ok {
		return fmt.Errorf("not a valid %s JSON Schema: %s", d, explainLibrary(invalid))
	}
	return err
}

// plainSchema is plain for a schema. It omits what Confluent Schema Registry accepts and the
// metaschemas reject: an enum that is empty or has duplicates, which the drafts only advise
// against, and the empty required of draft 4 that generators write.
func (sums digests) plainSchema(v *jsontree.Value, as keywordKind) any {
	switch {
	case as == noSchema || as == plainValues:
		return plain(v)
	case v.Kind == jsontree.Array:
		items := make([]any, v.Len())
		for i, item := range v.Elements() {
			items[i] = sums.plainSchema(item, oneSchema)
		}
		return items
	case v.Kind != jsontree.Object:
		return plain(v)
	}
	members := make(map[string]any, v.Len())
	for name, item := range v.Members() {
		switch {
		case as == schemaMap || as == mapOrNames:
			members[name] = sums.plainSchema(item, oneSchema)
		case name == "enum" && item.Kind == jsontree.Array && (item.Len() == 0 || sums.repeats(item)):
		case name == "required" && item.Kind == jsontree.Array && item.Len() == 0:
		default:
			members[name] = sums.plainSchema(item, keywordKinds[name])
		}
	}
	return members
}

func metaWork(v *jsontree.Value, depth int) int {
	work := 0
	if v.Kind == jsontree.Object {
		work = 1 + depth/metaWorkStep
	}
	for _, item := range v.Elements() {
		work += metaWork(item, depth+1)
	}
	for _, member := range v.Members() {
		work += metaWork(member, depth+1)
	}
	return work
}

var english = message.NewPrinter(language.English)

// explainLibrary lists the first errors of the library with their positions.
func explainLibrary(err *metaschema.ValidationError) string {
	const most = 3
	var found []string
	var walk func(e *metaschema.ValidationError)
	walk = func(e *metaschema.ValidationError) {
		if len(found) > most {
			return
		}
		if len(e.Causes) == 0 {
			what := e.ErrorKind.LocalizedString(english)
			found = append(found, fmt.Sprintf("at '%s': %s", pointer(e.InstanceLocation), clip(what, 300)))
		}
		for _, cause := range e.Causes {
			walk(cause)
		}
	}
	walk(err)
	if len(found) > most {
		found[most] = "and more"
	}
	return strings.Join(found, "; ")
}

// pointer formats tokens as a JSON pointer in a URI fragment.
func pointer(tokens []string) string {
	if len(tokens) == 0 {
		return "#"
	}
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var b strings.Builder
	b.WriteByte('#')
	for _, token := range tokens {
		b.WriteByte('/')
		b.WriteString(escape.Replace(token))
	}
	return clip(b.String(), 300)
}

// clip shortens s to about n bytes without splitting a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}
