package messageapi

import (
	"net/http"
	"slices"

	"freshet/internal/access"
)

const (
	topicPath     = adminRoot + "{domain}/{tenant}/{namespace}/{topic}"
	namespacePath = adminRoot + "namespaces/{tenant}/{namespace}"
	schemaPath    = adminRoot + "schemas/{tenant}/{namespace}/{topic}"
	subPath       = topicPath + "/subscription/{subscription}"
)

// need makes the permissions of a route: a kind of thing and verbs.
func need(resource string, verbs ...string) []access.Permission {
	list := make([]access.Permission, len(verbs))
	for i, v := range verbs {
		list[i] = access.Permission("messaging." + resource + "." + v)
	}
	return list
}

// adminRoutes are all calls under /admin/v2 and /rest-stream.
func adminRoutes() []route {
	return slices.Concat(
		tenantRoutes(), namespaceRoutes(), topicRoutes(), subscriptionRoutes(), schemaRoutes(),
		policyRoutes(), streamRoutes(),
	)
}

func tenantRoutes() []route {
	const one = adminRoot + "tenants/{tenant}"
	return []route{
		{method: http.MethodGet, pattern: adminRoot + "clusters", handle: (*call).listClusters},
		{method: http.MethodGet, pattern: adminRoot + "tenants", handle: (*call).listTenants},
		{method: http.MethodGet, pattern: one, needs: need("tenants", "describe"), handle: (*call).getTenant},
		{method: http.MethodPut, pattern: one, needs: need("tenants", "create"), handle: (*call).createTenant},
		{method: http.MethodPost, pattern: one, needs: need("tenants", "update"), handle: (*call).updateTenant},
		{method: http.MethodDelete, pattern: one, needs: need("tenants", "delete"), handle: (*call).deleteTenant},
	}
}

func namespaceRoutes() []route {
	return []route{
		{method: http.MethodGet, pattern: adminRoot + "namespaces/{tenant}", handle: (*call).listNamespaces},
		{method: http.MethodGet, pattern: namespacePath, needs: need("namespaces", "describe"), handle: (*call).getNamespace},
		{method: http.MethodPut, pattern: namespacePath, needs: need("namespaces", "create"), handle: (*call).createNamespace},
		{method: http.MethodDelete, pattern: namespacePath, needs: need("namespaces", "delete"), handle: (*call).deleteNamespace},
		{method: http.MethodGet, pattern: namespacePath + "/topics", handle: (*call).listTopics},
		{method: http.MethodGet, pattern: namespacePath + "/permissions", needs: need("namespaces", "describe"), handle: (*call).namespacePermissions},
		{method: http.MethodPost, pattern: namespacePath + "/permissions/{role}", needs: need("namespaces", "manage"), handle: (*call).grantNamespace},
		{method: http.MethodDelete, pattern: namespacePath + "/permissions/{role}", needs: need("namespaces", "manage"), handle: (*call).revokeNamespace},
		{method: http.MethodGet, pattern: namespacePath + "/properties", needs: need("namespaces", "describe"), handle: (*call).namespaceProperties},
		{method: http.MethodPut, pattern: namespacePath + "/properties", needs: need("namespaces", "update"), handle: (*call).setNamespaceProperties},
		{method: http.MethodDelete, pattern: namespacePath + "/properties", needs: need("namespaces", "update"), handle: (*call).clearNamespaceProperties},
	}
}

func topicRoutes() []route {
	const space = adminRoot + "{domain}/{tenant}/{namespace}"
	describe := need("topics", "describe", "produce", "consume")
	return []route{
		{method: http.MethodGet, pattern: space, handle: (*call).listTopics},
		{method: http.MethodGet, pattern: space + "/partitioned", handle: (*call).listPartitioned},
		{method: http.MethodPut, pattern: topicPath, needs: need("topics", "create"), handle: (*call).createTopic},
		{method: http.MethodDelete, pattern: topicPath, needs: need("topics", "delete"), handle: (*call).deleteTopic},
		{method: http.MethodPut, pattern: topicPath + "/partitions", needs: need("topics", "create"), handle: (*call).createPartitioned},
		{method: http.MethodPost, pattern: topicPath + "/partitions", needs: need("topics", "update"), handle: (*call).growTopic},
		{method: http.MethodGet, pattern: topicPath + "/partitions", needs: describe, handle: (*call).getPartitions},
		{method: http.MethodDelete, pattern: topicPath + "/partitions", needs: need("topics", "delete"), handle: (*call).deletePartitioned},
		{method: http.MethodGet, pattern: topicPath + "/properties", needs: describe, handle: (*call).topicProperties},
		{method: http.MethodPut, pattern: topicPath + "/properties", needs: need("topics", "update"), handle: (*call).setTopicProperties},
		{method: http.MethodDelete, pattern: topicPath + "/properties", needs: need("topics", "update"), handle: (*call).clearTopicProperty},
		{method: http.MethodGet, pattern: topicPath + "/stats", needs: describe, handle: (*call).topicStats},
		{method: http.MethodGet, pattern: topicPath + "/partitioned-stats", needs: describe, handle: (*call).partitionedStats},
		{method: http.MethodGet, pattern: topicPath + "/internalStats", needs: describe, handle: (*call).internalStats},
		{method: http.MethodGet, pattern: topicPath + "/lastMessageId", needs: describe, handle: (*call).lastMessageID},
		{method: http.MethodGet, pattern: topicPath + "/messageid/{timestamp}", needs: describe, handle: (*call).messageIDAt},
		{method: http.MethodGet, pattern: topicPath + "/ledger/{ledger}/entry/{entry}", needs: need("topics", "consume"), handle: (*call).messageAt},
		{method: http.MethodPost, pattern: topicPath + "/terminate", needs: need("topics", "manage"), handle: (*call).terminate},
		{method: http.MethodGet, pattern: topicPath + "/permissions", needs: need("topics", "describe"), handle: (*call).topicPermissions},
		{method: http.MethodPost, pattern: topicPath + "/permissions/{role}", needs: need("topics", "manage"), handle: (*call).grantTopic},
		{method: http.MethodDelete, pattern: topicPath + "/permissions/{role}", needs: need("topics", "manage"), handle: (*call).revokeTopic},
	}
}

func subscriptionRoutes() []route {
	// Whoever may consume may have a subscription of its own, as in Pulsar.
	move := append(need("subscriptions", "update"), permitConsume)
	return []route{
		{method: http.MethodPut, pattern: subPath, needs: append(need("subscriptions", "create"), permitConsume), handle: (*call).subscribe},
		{method: http.MethodDelete, pattern: subPath, needs: append(need("subscriptions", "delete"), permitConsume), handle: (*call).unsubscribe},
		{method: http.MethodGet, pattern: topicPath + "/subscriptions", needs: append(need("subscriptions", "list"), permitConsume), handle: (*call).listSubscriptions},
		{method: http.MethodPost, pattern: subPath + "/resetcursor", needs: move, handle: (*call).resetToID},
		{method: http.MethodPost, pattern: subPath + "/resetcursor/{timestamp}", needs: move, handle: (*call).resetToTime},
		{method: http.MethodPost, pattern: subPath + "/skip_all", needs: move, handle: (*call).skipAll},
		{method: http.MethodPost, pattern: subPath + "/skip/{count}", needs: move, handle: (*call).skip},
		{method: http.MethodPost, pattern: subPath + "/expireMessages/{seconds}", needs: move, handle: (*call).expire},
		{method: http.MethodPost, pattern: topicPath + "/all_subscription/expireMessages/{seconds}", needs: need("subscriptions", "update"), handle: (*call).expireAll},
		{method: http.MethodGet, pattern: subPath + "/properties", needs: append(need("subscriptions", "describe"), permitConsume), handle: (*call).subscriptionProperties},
		{method: http.MethodPut, pattern: subPath + "/properties", needs: move, handle: (*call).setSubscriptionProperties},
		{method: http.MethodGet, pattern: subPath + "/position/{position}", needs: need("topics", "consume"), handle: (*call).peek},
	}
}

func schemaRoutes() []route {
	// Whoever produces may bring a schema, as in Pulsar.
	read := need("schemas", "describe")
	read = append(read, permitProduce, permitConsume)
	return []route{
		{method: http.MethodPost, pattern: schemaPath + "/schema", needs: append(need("schemas", "create"), permitProduce), handle: (*call).addSchema},
		{method: http.MethodGet, pattern: schemaPath + "/schema", needs: read, handle: (*call).latestSchema},
		{method: http.MethodDelete, pattern: schemaPath + "/schema", needs: need("schemas", "delete"), handle: (*call).deleteSchema},
		{method: http.MethodGet, pattern: schemaPath + "/schema/{version}", needs: read, handle: (*call).schemaVersion},
		{method: http.MethodGet, pattern: schemaPath + "/schemas", needs: read, handle: (*call).listSchemas},
		{method: http.MethodPost, pattern: schemaPath + "/compatibility", needs: need("schemas", "describe", "create"), handle: (*call).testSchema},
		{method: http.MethodPost, pattern: schemaPath + "/version", needs: read, handle: (*call).findSchema},
		{method: http.MethodGet, pattern: schemaPath + "/metadata", needs: read, handle: (*call).schemaMetadata},
	}
}

func streamRoutes() []route {
	return []route{
		{method: http.MethodGet, pattern: streamRoot + "topics", handle: (*call).streamTopics},
		{method: http.MethodPost, pattern: streamRoot + "topics", handle: (*call).createStreamTopic},
	}
}
