package adminapi

import (
	"fmt"
	"net/http"

	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp"
)

// filterBody is the filter of a subscription; "" is none.
type filterBody struct {
	Filter string `json:"filter"`
}

// subscriptionFilter is GET …/subscription/{subscription}/filter, an extension.
func (c *call) subscriptionFilter() error {
	text, err := c.filterInForce()
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, filterBody{text})
}

// setSubscriptionFilter is PUT …/subscription/{subscription}/filter, an extension. It keeps all other settings.
func (c *call) setSubscriptionFilter() error {
	var body struct {
		Filter *string `json:"filter"`
	}
	if _, err := c.Decode(&body, maxSmallBody); err != nil {
		return err
	}
	if body.Filter == nil {
		return brokerhttp.BadBody(`filter is missing; "" removes the filter`)
	}
	current, err := c.filterInForce()
	if err != nil {
		return err
	}
	if err := c.authorizeFilter(*body.Filter, current); err != nil {
		return err
	}
	return c.done(c.Cluster.Consumer.SetSubscriptionFilter(c.R.Context(), c.Topic, c.Subscription, *body.Filter))
}

func (c *call) filterInForce() (string, error) {
	properties, err := c.Cluster.Consumer.SubscriptionProperties(c.R.Context(), c.Topic, c.Subscription)
	return properties[messaging.PropertyFilter], err
}

// authorizeFilter checks that the caller may replace a filter: it needs the permission to consume, unless the
// filter is removed or stays the same. The statistics show how many messages a filter selects, so a caller that
// may not read messages could otherwise find out what is in them.
func (c *call) authorizeFilter(text, current string) error {
	if text == "" || text == current {
		return nil
	}
	if err := c.Require(brokerhttp.PermitConsume); err != nil {
		return fmt.Errorf("setting the filter of a subscription: %w", err)
	}
	return nil
}
