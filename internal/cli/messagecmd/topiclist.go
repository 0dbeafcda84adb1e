package messagecmd

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"freshet/client"
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
	var namespaces []string
	if slices.ContainsFunc(found, func(t client.TopicEntry) bool { return strings.Count(t.Name, ".") > 1 }) {
		// Without permission for the namespaces, the names stay as the API returns them.
		namespaces, _ = listNamespaces(ctx, c, nil)
	}
	topics := make([]topicEntry, len(found))
	for i, t := range found {
		topics[i] = topicEntry{commandName(t.Name, namespaces), t.Partitions, t.Internal}
	}
	return topics, nil
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
