package messagecmd

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet/internal/base/errs"
	"freshet/internal/cli/hint"
)

// The errors of the message and administration APIs that do not name the missing object.
const (
	missingTopic        = "topic does not exist"
	missingSubscription = "subscription does not exist"
	missingNamespace    = "namespace does not exist"
	missingTenant       = "tenant does not exist"
	missingGroup        = "group does not exist"
)

// nameMissingObjects makes commands whose first argument is a topic or a group report which
// object does not exist, and what to do.
func nameMissingObjects(commands ...*cobra.Command) {
	for _, cmd := range commands {
		nameMissingObjects(cmd.Commands()...)
		run := cmd.RunE
		if fields := strings.Fields(cmd.Use); run == nil || len(fields) < 2 ||
			!strings.HasPrefix(fields[1], "TOPIC") && fields[1] != "GROUP" {
			continue
		}
		cmd.RunE = func(cmd *cobra.Command, given []string) error { return explainMissing(run(cmd, given), given) }
	}
}

// explainMissing replaces the server's error about a missing object. given are the arguments of
// the command: a topic and perhaps a subscription, or a group.
func explainMissing(err error, given []string) error {
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Status != http.StatusNotFound || len(given) == 0 {
		return err
	}
	name := given[0]
	tenant, namespace, _ := strings.Cut(name, "/")
	namespace, _, _ = strings.Cut(namespace, "/")
	advice := hint.Of(err)
	switch refused.Message {
	case missingTopic:
		return errNoTopic(name)
	case missingSubscription:
		if len(given) > 1 {
			name = given[1] + " of topic " + name
		} else {
			name = "of topic " + name
		}
		if advice == "" {
			advice = "'freshet subscription list " + given[0] + "' lists the subscriptions of the topic."
		}
		return hint.Add(errs.Newf(errs.NotFound, "subscription %s does not exist", name), "%s", advice)
	case missingNamespace:
		return hint.Add(errs.Newf(errs.NotFound, "namespace %s/%s does not exist", tenant, namespace),
			"'freshet topic create %s --parents' creates it; 'freshet namespace list %s' lists those that exist.", name,
			tenant)
	case missingTenant:
		return hint.Add(errs.Newf(errs.NotFound, "tenant %s does not exist", tenant),
			"'freshet topic create %s --parents' creates it with its namespace; 'freshet tenant list' lists those "+
				"that exist.", name)
	case missingGroup:
		return hint.Add(errs.Newf(errs.NotFound, "group %s does not exist", name),
			"'freshet group list' lists the consumer groups.")
	}
	return err
}

func errNoTopic(name string) error {
	return hint.Add(errs.Newf(errs.NotFound, "topic %s does not exist", name),
		"'freshet topic list' lists the topics, 'freshet topic create %s' creates it.", name)
}

// requireTopic returns an error if a topic does not exist. Some calls would create it, and its
// name may be a typo. A caller who may not read the topic passes.
func requireTopic(ctx context.Context, c *client.Client, name string) error {
	_, err := c.Topic(name).Partitions(ctx)
	if errors.Is(err, client.ErrDenied) {
		return nil
	}
	return explainMissing(err, []string{name})
}

// requireNamespace returns an error if a namespace (tenant/namespace) does not exist.
func requireNamespace(ctx context.Context, c *client.Client, name string) error {
	tenant, namespace, _ := strings.Cut(name, "/")
	_, err := c.Do(ctx, &client.Request{
		Method: http.MethodGet,
		Path:   c.ClusterPath("/admin/v2/namespaces/" + url.PathEscape(tenant) + "/" + url.PathEscape(namespace)),
	})
	if errors.Is(err, client.ErrNotFound) {
		return hint.Add(errs.Newf(errs.NotFound, "namespace %s does not exist", name),
			"'freshet namespace list' lists the namespaces.")
	}
	return nil
}
