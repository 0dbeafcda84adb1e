// Package resourcecmd implements the commands for resources of any kind, in the style of
// kubectl: get, describe, explain, apply, edit, diff, delete, wait. It has no list of kinds: it discovers
// the kinds and the columns of their tables from the server.
package resourcecmd

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet.dev/client/resources"
	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/contexts"
	"freshet/internal/cli/hint"
)

// Commands returns the commands of this package.
func Commands(env *command.Env) []*cobra.Command {
	return command.InSection(command.SectionResources,
		newGet(env), newDescribe(env), newExplain(env), newApply(env), newEdit(env), newDiff(env), newDelete(env),
		newWait(env))
}

// session is the connection of one command, the context in use, and the server's kinds.
type session struct {
	*resources.Client
	env   *command.Env
	at    contexts.Context
	kinds []resources.Kind
}

func connect(ctx context.Context, env *command.Env) (*session, error) {
	r, at, err := env.Resources()
	if err != nil {
		return nil, err
	}
	kinds, err := r.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	return &session{Client: r, env: env, at: at, kinds: kinds}, nil
}

// findKinds returns the kinds that a word of the command line selects.
func (s *session) findKinds(word string) ([]resources.Kind, error) {
	found := resources.Find(s.kinds, word)
	found = slices.DeleteFunc(slices.Clone(found), func(k resources.Kind) bool { return !k.Can("get") })
	if len(found) > 0 {
		return found, nil
	}
	if len(s.kindNames()) == 0 {
		return nil, hint.Add(errs.Newf(errs.Invalid, "server at %s lists no kinds of resources", s.at.Server),
			"Check that the address is that of a Freshet server.")
	}
	err := errs.Newf(errs.NotFound, "kind %q does not exist on the server", word)
	if near := s.suggestions(word); len(near) > 0 {
		return nil, hint.Add(err, "Did you mean %s?", strings.Join(near, " or "))
	}
	names := s.kindNames()
	return nil, hint.Add(err, "Kinds are, for example, %s; 'freshet get all' lists objects of all kinds.",
		strings.Join(names[:min(4, len(names))], ", "))
}

// kindNames lists the names of all kinds that can be read.
func (s *session) kindNames() []string {
	var words []string
	for _, k := range s.kinds {
		if k.Can("get") && !slices.Contains(words, k.Resource) {
			words = append(words, k.Resource)
		}
	}
	return words
}

// suggestions lists kinds whose names contain the beginning of the word.
func (s *session) suggestions(word string) []string {
	const enough = 4
	if len(word) < enough {
		return nil
	}
	return slices.DeleteFunc(s.kindNames(),
		func(name string) bool { return !strings.Contains(name, strings.ToLower(word[:enough])) })
}

// selected is the selection of a command line: all objects of kinds, or single objects.
type selected struct {
	kinds []resources.Kind // all objects of these kinds, if refs is empty
	refs  []resources.Ref
}

// selection parses KIND[,KIND] [NAME...] or KIND/NAME...
func (s *session) selection(cmd *cobra.Command, args []string) (selected, error) {
	var all selected
	if len(args) == 0 {
		return all, command.Usagef(cmd, "argument is missing: KIND, KIND NAME or KIND/NAME")
	}
	if strings.Contains(args[0], "/") {
		for _, arg := range args {
			word, name, ok := strings.Cut(arg, "/")
			if !ok || name == "" || word == "" {
				return all, command.Usagef(cmd, "argument %q is not of the form KIND/NAME", arg)
			}
			kinds, err := s.findKinds(word)
			if err != nil {
				return all, err
			}
			all.refs = append(all.refs, s.ref(kinds[0], name))
		}
		return all, nil
	}
	for word := range strings.SplitSeq(args[0], ",") {
		kinds, err := s.findKinds(word)
		if err != nil {
			return all, err
		}
		all.kinds = append(all.kinds, kinds...)
	}
	for _, name := range args[1:] {
		if strings.Contains(name, "/") {
			return all, command.Usagef(cmd, "name %q is not valid; write either KIND NAME... or KIND/NAME...", name)
		}
		for _, kind := range all.kinds {
			all.refs = append(all.refs, s.ref(kind, name))
		}
	}
	return all, nil
}

// getNamed reads an object. A missing object is an error with a hint at the list of objects.
func (s *session) getNamed(ctx context.Context, ref resources.Ref) (resources.Object, error) {
	object, err := s.Get(ctx, ref)
	return object, s.explainMissing(err, ref)
}

// explainMissing adds a hint at the list of objects to the server's error about a missing one.
func (s *session) explainMissing(err error, ref resources.Ref) error {
	if !errors.Is(err, client.ErrNotFound) {
		return err
	}
	return hint.Add(err, "'freshet get %s' lists those in organization %s.", ref.Kind.Resource, s.at.Organization)
}

// ref returns a reference to an object in the context's organization.
func (s *session) ref(kind resources.Kind, name string) resources.Ref {
	ref := resources.Ref{Kind: kind, Name: name}
	if kind.Namespaced {
		ref.Organization = s.at.Organization
	}
	return ref
}

// completionTimeout keeps a shell from hanging when the server does not respond.
const completionTimeout = 3 * time.Second

// complete completes kinds and the names of objects.
func complete(env *command.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		s, err := connect(ctx, env)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var word, prefix string
		switch {
		case strings.Contains(typed, "/"):
			word, _, _ = strings.Cut(typed, "/")
			prefix = word + "/"
		case len(args) == 0:
			return append(s.kindNames(), "all"), cobra.ShellCompDirectiveNoFileComp
		default:
			word, _, _ = strings.Cut(args[0], "/")
			if strings.Contains(args[0], "/") {
				prefix = word + "/"
			}
		}
		names, err := s.names(ctx, word)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var offers []cobra.Completion
		for _, name := range names {
			offers = append(offers, prefix+name)
		}
		return offers, cobra.ShellCompDirectiveNoFileComp
	}
}

// names lists the names of the objects of a kind.
func (s *session) names(ctx context.Context, word string) ([]string, error) {
	kinds, err := s.findKinds(word)
	if err != nil {
		return nil, err
	}
	objects, err := s.List(ctx, kinds[0], s.ref(kinds[0], "").Organization, resources.ListOptions{})
	var names []string
	for _, o := range objects {
		names = append(names, o.Name())
	}
	return names, err
}

// each calls do for every item, also after a failure, and joins the errors.
func each[T any](items []T, do func(T) error) error {
	var failed []error
	for _, item := range items {
		if err := do(item); err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) == 1 {
		return failed[0]
	}
	return errors.Join(failed...)
}
