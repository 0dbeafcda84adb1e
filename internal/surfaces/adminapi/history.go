package adminapi

import (
	"net/http"
	"slices"

	"freshet/internal/broker/history"
	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp"
)

// The history of statistics (docs/spec/messages.md#history). Each route has the permissions and the errors
// of the statistics of the same object.

// clusterHistory is GET /admin/v2/history.
func (c *call) clusterHistory() error { return c.writeHistory(history.Key{Kind: history.Cluster}) }

// topicHistory has the history of the topic also for the name of a partition.
func (c *call) topicHistory() error {
	s, err := c.Cluster.Statistics.Stats(c.R.Context(), c.Topic)
	if err != nil {
		return err
	}
	return c.writeHistory(history.Key{Kind: history.Topic, Topic: s.Topic.ID})
}

func (c *call) subscriptionHistory() error {
	s, err := c.Cluster.Statistics.Stats(c.R.Context(), c.Topic)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(s.Subscriptions, func(s messaging.SubscriptionStats) bool {
		return s.Name == c.Subscription
	}) {
		return messaging.ErrNoSubscription
	}
	return c.writeHistory(history.Key{Kind: history.Subscription, Topic: s.Topic.ID, Name: c.Subscription})
}

// groupHistory is GET /rest-stream/admin/v1/groups/{group}/history.
func (c *call) groupHistory() error {
	coordinator, key, err := c.bindGroup()
	if err != nil {
		return err
	}
	if _, _, err := c.seeGroup(coordinator, key); err != nil {
		return err
	}
	return c.writeHistory(history.Key{Kind: history.Group, Tenant: key.Tenant, Name: key.Group})
}

// writeHistory responds with the history of a key of the cluster, from all members.
func (c *call) writeHistory(key history.Key) error {
	key.Cluster = c.Cluster.UID
	q, err := history.NewQuery(key, history.Range(c.R.URL.Query().Get("range")))
	if err != nil {
		return brokerhttp.BadQuery("%w", err)
	}
	answer := c.Cluster.History.Answer(q)
	c.Cluster.Members.AddHistory(c.R.Context(), q, answer)
	return c.JSON(http.StatusOK, answer)
}
