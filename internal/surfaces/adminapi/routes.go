package adminapi

import (
	"slices"

	"freshet/internal/identity/access"
	"freshet/internal/surfaces/brokerhttp"
)

// Bounds of bodies, in bytes.
const (
	maxSmallBody = 64 << 10 // options
	maxAdminBody = 2 << 20  // policies, properties, schemas
)

const (
	topicPath     = adminRoot + "{domain}/{tenant}/{namespace}/{topic}"
	namespacePath = adminRoot + "namespaces/{tenant}/{namespace}"
	schemaPath    = adminRoot + "schemas/{tenant}/{namespace}/{topic}"
	subPath       = topicPath + "/subscription/{subscription}"
)

// need returns the permissions of a route: one for each verb on the resource.
func need(resource string, verbs ...string) []access.Permission {
	list := make([]access.Permission, len(verbs))
	for i, v := range verbs {
		list[i] = access.Permission("messaging." + resource + "." + v)
	}
	return list
}

// routes returns every route of the surface.
func routes() []route {
	return slices.Concat(
		tenantRoutes(), namespaceRoutes(), topicRoutes(), subscriptionRoutes(), schemaRoutes(),
		policyRoutes(), contractRoutes(), kafkaRoutes(),
	)
}

func tenantRoutes() []route {
	const one = adminRoot + "tenants/{tenant}"
	return []route{
		get(adminRoot+"clusters", nil, (*call).listClusters),
		get(adminRoot+"history", []access.Permission{access.ReadMetrics}, (*call).clusterHistory),
		get(adminRoot+"tenants", nil, (*call).listTenants),
		get(one, need("tenants", "describe"), (*call).getTenant),
		put(one, need("tenants", "create"), (*call).createTenant),
		post(one, need("tenants", "update"), (*call).updateTenant),
		remove(one, need("tenants", "delete"), (*call).deleteTenant),
	}
}

func namespaceRoutes() []route {
	return []route{
		get(adminRoot+"namespaces/{tenant}", nil, (*call).listNamespaces),
		get(namespacePath, need("namespaces", "describe"), (*call).getNamespace),
		put(namespacePath, need("namespaces", "create"), (*call).createNamespace),
		remove(namespacePath, need("namespaces", "delete"), (*call).deleteNamespace),
		get(namespacePath+"/topics", nil, (*call).listTopics),
		get(namespacePath+"/permissions", need("namespaces", "describe"), (*call).namespacePermissions),
		post(namespacePath+"/permissions/{role}", need("namespaces", "manage"), (*call).grantNamespace),
		remove(namespacePath+"/permissions/{role}", need("namespaces", "manage"), (*call).revokeNamespace),
		get(namespacePath+"/properties", need("namespaces", "describe"), (*call).namespaceProperties),
		put(namespacePath+"/properties", need("namespaces", "update"), (*call).setNamespaceProperties),
		remove(namespacePath+"/properties", need("namespaces", "update"), (*call).clearNamespaceProperties),
	}
}

func topicRoutes() []route {
	const space = adminRoot + "{domain}/{tenant}/{namespace}"
	describe := need("topics", "describe", "produce", "consume")
	return []route{
		get(space, nil, (*call).listTopics),
		get(space+"/partitioned", nil, (*call).listPartitioned),
		put(topicPath, need("topics", "create"), (*call).createTopic),
		remove(topicPath, need("topics", "delete"), (*call).deleteTopic),
		put(topicPath+"/partitions", need("topics", "create"), (*call).createPartitioned),
		post(topicPath+"/partitions", need("topics", "update"), (*call).growTopic),
		get(topicPath+"/partitions", describe, (*call).getPartitions),
		remove(topicPath+"/partitions", need("topics", "delete"), (*call).deletePartitioned),
		get(topicPath+"/properties", describe, (*call).topicProperties),
		put(topicPath+"/properties", need("topics", "update"), (*call).setTopicProperties),
		remove(topicPath+"/properties", need("topics", "update"), (*call).clearTopicProperty),
		get(topicPath+"/stats", describe, (*call).topicStats),
		get(topicPath+"/partitioned-stats", describe, (*call).partitionedStats),
		get(topicPath+"/history", describe, (*call).topicHistory),
		get(topicPath+"/internalStats", describe, (*call).internalStats),
		get(topicPath+"/lastMessageId", describe, (*call).lastMessageID),
		get(topicPath+"/messageid/{timestamp}", describe, (*call).messageIDAt),
		get(topicPath+"/ledger/{ledger}/entry/{entry}", need("topics", "consume"), (*call).messageAt),
		post(topicPath+"/terminate", need("topics", "manage"), (*call).terminate),
		get(topicPath+"/permissions", need("topics", "describe"), (*call).topicPermissions),
		post(topicPath+"/permissions/{role}", need("topics", "manage"), (*call).grantTopic),
		remove(topicPath+"/permissions/{role}", need("topics", "manage"), (*call).revokeTopic),
	}
}

func subscriptionRoutes() []route {
	// The consume permission includes creating and moving subscriptions, as in Pulsar.
	move := append(need("subscriptions", "update"), brokerhttp.PermitConsume)
	return []route{
		put(subPath, append(need("subscriptions", "create"), brokerhttp.PermitConsume), (*call).subscribe),
		remove(subPath, append(need("subscriptions", "delete"), brokerhttp.PermitConsume), (*call).unsubscribe),
		get(topicPath+"/subscriptions", append(need("subscriptions", "list"), brokerhttp.PermitConsume),
			(*call).listSubscriptions),
		post(subPath+"/resetcursor", move, (*call).resetToID),
		post(subPath+"/resetcursor/{timestamp}", move, (*call).resetToTime),
		post(subPath+"/skip_all", move, (*call).skipAll),
		post(subPath+"/skip/{count}", move, (*call).skip),
		post(subPath+"/expireMessages/{seconds}", move, (*call).expire),
		post(topicPath+"/all_subscription/expireMessages/{seconds}", need("subscriptions", "update"),
			(*call).expireAll),
		get(subPath+"/properties", append(need("subscriptions", "describe"), brokerhttp.PermitConsume),
			(*call).subscriptionProperties),
		put(subPath+"/properties", move, (*call).setSubscriptionProperties),
		get(subPath+"/filter", append(need("subscriptions", "describe"), brokerhttp.PermitConsume),
			(*call).subscriptionFilter),
		put(subPath+"/filter", move, (*call).setSubscriptionFilter), // also checks the permission to consume
		get(subPath+"/history", append(need("subscriptions", "describe"), brokerhttp.PermitConsume),
			(*call).subscriptionHistory),
		get(subPath+"/position/{position}", need("topics", "consume"), (*call).peek),
		// The handler also checks the permissions on the dead letters and on the target.
		post(subPath+"/replay_dead_letters", append(need("subscriptions", "describe"), brokerhttp.PermitConsume),
			(*call).replayDeadLetters),
	}
}

func schemaRoutes() []route {
	// The produce permission includes adding a schema, as in Pulsar.
	read := need("schemas", "describe")
	read = append(read, brokerhttp.PermitProduce, brokerhttp.PermitConsume)
	return []route{
		post(schemaPath+"/schema", append(need("schemas", "create"), brokerhttp.PermitProduce), (*call).addSchema),
		get(schemaPath+"/schema", read, (*call).latestSchema),
		remove(schemaPath+"/schema", need("schemas", "delete"), (*call).deleteSchema),
		get(schemaPath+"/schema/{version}", read, (*call).schemaVersion),
		get(schemaPath+"/schemas", read, (*call).listSchemas),
		post(schemaPath+"/compatibility", need("schemas", "describe", "create"), (*call).testSchema),
		post(schemaPath+"/version", read, (*call).findSchema),
		get(schemaPath+"/metadata", read, (*call).schemaMetadata),
	}
}

func kafkaRoutes() []route {
	return []route{
		get(kafkaRoot+"topics", nil, (*call).listKafkaTopics),
		post(kafkaRoot+"topics", nil, (*call).createKafkaTopic),
		get(kafkaRoot+"groups", nil, (*call).listGroups),
		get(kafkaRoot+"groups/{group}", nil, (*call).getGroup),
		get(kafkaRoot+"groups/{group}/history", nil, (*call).groupHistory),
		remove(kafkaRoot+"groups/{group}", nil, (*call).deleteGroup),
		put(kafkaRoot+"groups/{group}/offsets", nil, (*call).setGroupOffsets),
	}
}
