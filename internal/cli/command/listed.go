package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"freshet.dev/client"
	"freshet.dev/client/resources"
	"freshet/internal/base/errs"
	"freshet/internal/cli/hint"
)

// CheckListed returns an error if the caller has no permission that begins with prefix, such as
// messaging.topics. Call it for an empty list: APIs omit what the caller may not see, so such a
// caller always gets one. what names the items, for the error. A credential that may not ask for
// its permissions, such as an API key of one instance, passes unless the request of probe is
// denied.
func (e *Env) CheckListed(ctx context.Context, prefix, what string, probe func() error) error {
	r, at, err := e.Resources()
	if err != nil {
		return err
	}
	review, err := r.Post(ctx, resources.Ref{Kind: RulesReviews}, "", map[string]any{
		"apiVersion": RulesReviews.APIVersion(), "kind": RulesReviews.Kind,
		"spec": map[string]any{"namespace": at.Organization},
	})
	if err != nil {
		if denied := probe(); errors.Is(denied, client.ErrDenied) {
			return fmt.Errorf("you may see none of the %s: %w", what, denied)
		}
		return nil
	}
	var result struct {
		Status struct {
			Rules []struct {
				Permissions []string `json:"permissions"`
			} `json:"rules"`
		} `json:"status"`
	}
	if err := review.Into(&result); err != nil {
		return fmt.Errorf("decoding the server's response: %w", err)
	}
	for _, rule := range result.Status.Rules {
		for _, permission := range rule.Permissions {
			if strings.HasPrefix(permission, prefix+".") {
				return nil
			}
		}
	}
	return hint.Add(errs.Newf(errs.Denied, "you may not list the %s of cluster %s in organization %s: you have none "+
		"of the permissions %s.*", what, at.Cluster, at.Organization, prefix),
		"'freshet can-i --list' shows your permissions; an administrator grants roles with 'freshet grant'.")
}
