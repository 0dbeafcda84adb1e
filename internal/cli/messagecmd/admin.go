package messagecmd

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"freshet.dev/client"
)

// adminCall makes a call of the administration API: path is below /admin/v2 and escaped. body and
// result may be nil.
func adminCall(ctx context.Context, c *client.Client, method, path string, body, result any) error {
	request := &client.Request{Method: method, Path: c.ClusterPath("/admin/v2/" + path)}
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		request.Body, request.Header = text, http.Header{"Content-Type": {"application/json"}}
	}
	response, err := c.Do(ctx, request)
	if err != nil || result == nil || len(response.Body) == 0 {
		return err
	}
	return response.JSON(result)
}

func tenantPath(tenant string) string { return "tenants/" + url.PathEscape(tenant) }

// namespacePath returns the path of a namespace, tenant/namespace.
func namespacePath(name string) string {
	tenant, namespace, _ := strings.Cut(name, "/")
	return "namespaces/" + url.PathEscape(tenant) + "/" + url.PathEscape(namespace)
}

// topicPath returns the path of a topic.
func topicPath(t *client.Topic) string {
	parts := strings.SplitN(strings.TrimPrefix(t.Name(), "persistent://"), "/", 3)
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return "persistent/" + strings.Join(parts, "/")
}

// ensureParents creates the tenant and the namespace of a topic, or only the tenant of a
// namespace, if they do not exist. name is tenant/namespace, and may have a topic.
func ensureParents(ctx context.Context, c *client.Client, name string, namespace bool) error {
	parts := strings.Split(strings.TrimPrefix(name, "persistent://"), "/")
	if len(parts) < 2 {
		return nil
	}
	err := adminCall(ctx, c, http.MethodPut, tenantPath(parts[0]), nil, nil)
	if err != nil && !errors.Is(err, client.ErrConflict) {
		return err
	}
	if !namespace {
		return nil
	}
	err = adminCall(ctx, c, http.MethodPut, namespacePath(parts[0]+"/"+parts[1]), nil, nil)
	if err != nil && !errors.Is(err, client.ErrConflict) {
		return err
	}
	return nil
}
