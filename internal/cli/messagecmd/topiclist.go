package messagecmd

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"freshet.dev/client"
)

// topicEntry is a topic in a list.
type topicEntry struct {
	Name       string `json:"name"`
	Partitions int    `json:"partitions"`
	Internal   bool   `json:"internal"`
}

// listTopics lists the topics that the caller may see, of one namespace or of all, with the names
// that commands take.
func listTopics(ctx context.Context, c *client.Client, namespace string) ([]topicEntry, error) {
	found, err := c.Topics(ctx, namespace)
	if err != nil {
		return nil, err
	}
	namespaces := namespacesOf(ctx, c, found, namespace)
	topics := make([]topicEntry, len(found))
	for i, t := range found {
		topics[i] = topicEntry{commandName(t.Name, namespaces), t.Partitions, t.Internal}
	}
	return topics, nil
}

// maxProbedNamespaces bounds the requests of namespacesOf. Names with other namespaces stay as the API returns them.
const maxProbedNamespaces = 32

// namespacesOf returns the namespaces of topics, to split the names that the API returns for them:
// in a name with two dots, the first two parts may be a namespace or part of the name of a topic
// in public/default. For a caller who may not list namespaces, it lists the topics of each
// candidate.
func namespacesOf(ctx context.Context, c *client.Client, topics []client.TopicEntry, given string) []string {
	var candidates []string
	for _, t := range topics {
		parts := strings.SplitN(t.Name, ".", 3)
		if len(parts) == 3 && !slices.Contains(candidates, parts[0]+"/"+parts[1]) {
			candidates = append(candidates, parts[0]+"/"+parts[1])
		}
	}
	if len(candidates) == 0 {
		return nil
	}
	if given != "" {
		return []string{given}
	}
	known, err := listNamespaces(ctx, c, nil)
	if err == nil {
		return known
	}
	for _, candidate := range candidates[:min(len(candidates), maxProbedNamespaces)] {
		// An error means that the caller sees no such namespace.
		if in, err := c.Topics(ctx, candidate); err == nil && len(in) > 0 {
			known = append(known, candidate)
		}
	}
	return known
}

// commandName returns the name of a topic that commands take, tenant/namespace/topic. The API
// returns tenant.namespace.topic for a topic that is not in public/default.
func commandName(name string, namespaces []string) string {
	parts := strings.SplitN(name, ".", 3)
	if len(parts) < 3 || !slices.Contains(namespaces, parts[0]+"/"+parts[1]) {
		return name
	}
	if parts[0] == "public" && parts[1] == "default" {
		return parts[2]
	}
	return strings.Join(parts, "/")
}

// listProbe returns a request that is denied if the caller may not list the topics of a namespace,
// public/default if it is empty.
func listProbe(ctx context.Context, c *client.Client, namespace string) func() error {
	return func() error {
		path := namespacePath(cmp.Or(namespace, "public/default")) + "/topics"
		return adminCall(ctx, c, http.MethodGet, path, nil, nil)
	}
}
