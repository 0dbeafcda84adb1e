package adminapi

import (
	"net/http"
	"strings"

	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp"
)

// listKafkaTopics is GET /rest-stream/admin/v1/topics: the topics of the cluster, or of
// one namespace, that the caller may see.
func (c *call) listKafkaTopics() error {
	ns, err := c.namespaceFilter()
	if err != nil {
		return err
	}
	if ns != nil {
		c.Namespace, c.Tenant = *ns, ns.Tenant
	}
	visible, err := c.visibilityOf("topics")
	if err != nil {
		return err
	}
	list := struct {
		Kind string       `json:"kind"`
		Data []kafkaTopic `json:"data"`
	}{"StreamTopicList", []kafkaTopic{}}
	err = c.Cluster.Catalogue.Topics(c.R.Context(), ns, func(t messaging.Topic) bool {
		if visible.allows(c.itemCall(t.Name.Namespace.Tenant, t.Name.Namespace, t.Name),
			need("topics", "describe", "produce", "consume")...) {
			list.Data = append(list.Data, renderKafkaTopic(t.Name, t.Partitions))
		}
		return true
	})
	// A filter by a namespace that does not exist returns an empty list.
	if err != nil && (ns == nil || brokerhttp.AdminCalls.Status(err) != http.StatusNotFound) {
		return err
	}
	return c.JSON(http.StatusOK, list)
}

// namespaceFilter parses the query parameter namespace: tenant/namespace,
// tenant.namespace, or a namespace of the tenant public.
func (c *call) namespaceFilter() (*names.Namespace, error) {
	text := c.R.URL.Query().Get("namespace")
	if text == "" {
		return nil, nil
	}
	tenant, name, ok := strings.Cut(text, "/")
	if !ok {
		tenant, name, ok = strings.Cut(text, ".")
	}
	if !ok {
		tenant, name = names.DefaultTenant, text
	}
	ns, err := names.NewNamespace(tenant, name)
	if err != nil {
		return nil, brokerhttp.BadQuery("namespace: %w", err)
	}
	return &ns, nil
}

// createKafkaTopic is POST /rest-stream/admin/v1/topics.
func (c *call) createKafkaTopic() error {
	var body struct {
		TopicName       string            `json:"topic_name"`
		PartitionsCount *int32            `json:"partitions_count"`
		Properties      map[string]string `json:"properties"`
		Require         string            `json:"require"`
	}
	if ok, err := c.Decode(&body, maxAdminBody); err != nil {
		return err
	} else if !ok || body.TopicName == "" {
		return brokerhttp.BadBody("topic_name is missing")
	}
	topic, err := names.ParseListName(body.TopicName)
	if err != nil {
		return brokerhttp.WithStatus(http.StatusBadRequest, brokerhttp.NameError(err))
	}
	c.Topic, c.Namespace, c.Tenant = topic, topic.Namespace, topic.Namespace.Tenant
	if err := c.Require(need("topics", "create")...); err != nil {
		return err
	}
	partitions := int32(0)
	if body.PartitionsCount != nil {
		if partitions = *body.PartitionsCount; partitions < 1 {
			return brokerhttp.BadBody("partitions_count must be at least 1")
		}
	}
	err = c.create(messaging.NewTopic{Partitions: partitions, Properties: body.Properties, Contract: body.Require})
	if err != nil {
		return brokerhttp.WithStatusIf(err, messaging.ErrPartitionCount, http.StatusBadRequest)
	}
	return c.JSON(http.StatusOK, renderKafkaTopic(topic, partitions))
}
