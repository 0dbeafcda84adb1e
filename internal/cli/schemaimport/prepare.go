package schemaimport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"freshet.dev/client"
	"freshet/internal/base/names"
)

// maxNamed is the number of names in a message.
const maxNamed = 10

// NamesError is the error for subjects whose names Freshet does not accept.
type NamesError struct{ Subjects []string }

// Error names some of the subjects.
func (e *NamesError) Error() string {
	return fmt.Sprintf("names of subjects are not valid (1 to %d of the characters a-z A-Z 0-9 . _ -): %s",
		names.MaxSubject, some(e.Subjects))
}

// NamespacesError is the error for subjects whose names belong to namespaces that do not exist.
type NamespacesError struct {
	Namespaces []string // tenant/namespace
	Subject    string   // one of the subjects, of the first namespace
}

// Error names some of the namespaces and a subject.
func (e *NamespacesError) Error() string {
	return fmt.Sprintf("namespaces do not exist in the cluster: %s (a subject of three parts belongs to the namespace "+
		"of the first two, so %s belongs to %s)", some(e.Namespaces), e.Subject, e.Namespaces[0])
}

// some joins the first names of a list.
func some(list []string) string {
	if more := len(list) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:maxNamed], ", "), more)
	}
	return strings.Join(list, ", ")
}

// prepare lists and checks the subjects. Nothing was written before it returns an error.
func (in *importer) prepare(ctx context.Context) ([]string, error) {
	mode, err := in.registry.Mode(ctx)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(mode, "READONLY") {
		return nil, errReadOnly
	}
	subjects, contexts, err := in.Source.subjects(ctx)
	if err != nil {
		return nil, err
	}
	if in.global, err = in.Source.level(ctx, ""); err != nil {
		return nil, err
	}
	in.global = strings.ToUpper(in.global)
	if len(contexts) > 0 {
		in.warnf("subjects of other contexts are not imported: %s. Import each with --source-context into a cluster "+
			"of its own, because the same id means another schema in each of them", some(contextNames(contexts)))
	}
	subjects = slices.DeleteFunc(subjects, func(s string) bool { return !strings.HasPrefix(s, in.SubjectPrefix) })
	if subjects, err = in.checkNames(subjects); err != nil {
		return nil, err
	}
	in.sum.Subjects = len(subjects)
	return subjects, in.checkNamespaces(ctx, subjects)
}

// contextNames returns contexts as Confluent Schema Registry writes them.
func contextNames(contexts []string) []string {
	written := make([]string, len(contexts))
	for i, name := range contexts {
		written[i] = "." + name
	}
	return written
}

// checkNames returns the subjects with valid names. Others are an error, or a warning if they are
// skipped.
func (in *importer) checkNames(subjects []string) ([]string, error) {
	var valid, invalid []string
	for _, subject := range subjects {
		if names.CheckSubject(subject) == nil {
			valid = append(valid, subject)
		} else {
			invalid = append(invalid, subject)
		}
	}
	switch err := (&NamesError{invalid}); {
	case len(invalid) == 0:
		return valid, nil
	case in.SkipInvalid:
		in.warnf("%v. They are skipped", err)
		return valid, nil
	case in.DryRun:
		in.sum.Problems = append(in.sum.Problems, err.Error())
		return valid, nil
	default:
		return nil, err
	}
}

// checkNamespaces returns an error if subjects belong to namespaces that do not exist.
func (in *importer) checkNamespaces(ctx context.Context, subjects []string) error {
	missing := &NamespacesError{}
	known := map[names.Namespace]bool{names.PublicDefault: true}
	for _, subject := range subjects {
		topic, err := names.SubjectTopic(subject)
		if err != nil || known[topic.Namespace] {
			continue
		}
		known[topic.Namespace] = true
		exists, err := in.hasNamespace(ctx, topic.Namespace)
		switch {
		case err != nil:
			return err
		case exists:
		default:
			if missing.Subject == "" {
				missing.Subject = subject
			}
			missing.Namespaces = append(missing.Namespaces, topic.Namespace.String())
		}
	}
	switch {
	case len(missing.Namespaces) == 0:
		return nil
	case in.DryRun:
		in.sum.Problems = append(in.sum.Problems, missing.Error())
		return nil
	default:
		return missing
	}
}

// hasNamespace reports whether a namespace of the cluster exists. A caller who may not read it passes:
// the registry checks it again.
func (in *importer) hasNamespace(ctx context.Context, n names.Namespace) (bool, error) {
	_, err := in.Target.Do(ctx, &client.Request{
		Method: http.MethodGet,
		Path: in.Target.ClusterPath("/admin/v2/namespaces/" + url.PathEscape(n.Tenant) + "/" +
			url.PathEscape(n.Name)),
	})
	switch {
	case errors.Is(err, client.ErrNotFound):
		return false, nil
	case errors.Is(err, client.ErrDenied):
		return true, nil
	default:
		return true, err
	}
}

func (in *importer) warnf(format string, args ...any) {
	in.sum.Warnings = append(in.sum.Warnings, fmt.Sprintf(format, args...))
}

// counters count what the source has and Freshet has not.
type counters struct{ contracts, modes counter }

// counter counts cases, and remembers the first.
type counter struct {
	n     int
	first string
}

func (c *counter) add(format string, args ...any) {
	if c.n++; c.n == 1 {
		c.first = fmt.Sprintf(format, args...)
	}
}

// warnings returns a warning for each counter that is not zero.
func (c *counters) warnings() []string {
	var list []string
	if n := c.contracts.n; n > 0 {
		list = append(list, fmt.Sprintf("metadata and rules of %d versions are not imported, beginning with %s. "+
			"Freshet stores schemas without data contracts", n, c.contracts.first))
	}
	if n := c.modes.n; n > 0 {
		list = append(list, fmt.Sprintf("modes of %d subjects are not imported; for example, %s. Freshet has one mode "+
			"for the whole registry", n, c.modes.first))
	}
	return list
}
