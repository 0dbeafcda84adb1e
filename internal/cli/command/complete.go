package command

import (
	"context"
	"time"

	"freshet.dev/client/resources"
)

// completionTimeout keeps a shell from hanging when the server does not respond.
const completionTimeout = 3 * time.Second

// ObjectNames lists the names of the objects of a kind in the context's organization, for
// completion. It returns none if the request fails.
func (e *Env) ObjectNames(ctx context.Context, kind resources.Kind) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	r, at, err := e.Resources()
	if err != nil {
		return nil
	}
	organization := ""
	if kind.Namespaced {
		organization = at.Organization
	}
	list, err := r.List(ctx, kind, organization, resources.ListOptions{})
	if err != nil {
		return nil
	}
	names := make([]string, len(list))
	for i, o := range list {
		names[i] = o.Name()
	}
	return names
}
