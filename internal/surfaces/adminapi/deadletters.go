package adminapi

import (
	"fmt"
	"net/http"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/broker/filter"
	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp"
)

const (
	defaultReplay = 100
	maxReplay     = 1000 // dead letters that one call sends
)

// replayBody is the body of a replay.
type replayBody struct {
	Filter string `json:"filter"`
	To     string `json:"to"`
	DryRun bool   `json:"dryRun"`
	After  string `json:"after"`
	Limit  *int   `json:"limit"`
}

// replayResult is the response to a replay.
type replayResult struct {
	Scanned  int64  `json:"scanned"`
	Matched  int64  `json:"matched"`
	Failed   int64  `json:"failed"`
	Failure  string `json:"failure,omitempty"`
	Replayed int64  `json:"replayed"`
	After    string `json:"after,omitempty"` // continues the replay; "" at the end
}

// replayDeadLetters is POST …/subscription/{subscription}/replay_dead_letters, an extension. It sends the
// subscription's dead letters to its topic again, or to another one (docs/spec/messages.md#replay).
func (c *call) replayDeadLetters() error {
	opts, err := c.replayOptions()
	if err != nil {
		return err
	}
	if err := c.authorizeReplay(&opts); err != nil {
		return c.RecordDenial(err)
	}
	done, err := c.Cluster.Replayer.Replay(c.WorkContext(), opts)
	if err != nil {
		return err
	}
	out := replayResult{
		Scanned: done.Progress.Scanned, Matched: done.Progress.Matched, Failed: done.Progress.Failed,
		Replayed: done.Sent,
	}
	if failure := done.Progress.Failure; failure != nil {
		out.Failure = brokerhttp.PublicReason(failure, brokerhttp.AdminCalls.Status(failure))
	}
	if done.More {
		out.After = done.Last.String()
	}
	return c.JSON(http.StatusOK, out)
}

// replayOptions parses the body, and finds the dead-letter topic of the subscription.
func (c *call) replayOptions() (opts messaging.ReplayOptions, err error) {
	var body replayBody
	if _, err := c.Decode(&body, maxSmallBody); err != nil {
		return opts, err
	}
	opts = messaging.ReplayOptions{Source: c.Topic, To: c.Topic, Limit: defaultReplay, DryRun: body.DryRun}
	if body.Limit != nil {
		if opts.Limit = *body.Limit; opts.Limit < 1 || opts.Limit > maxReplay {
			return opts, brokerhttp.BadBody("limit must be between 1 and %d", maxReplay)
		}
	}
	if body.Filter != "" {
		if opts.Filter, err = filter.Compile(body.Filter); err != nil {
			return opts, err
		}
	}
	if body.To != "" {
		if opts.To, err = names.ParseTopic(body.To); err != nil {
			return opts, brokerhttp.BadBody("to must be the full name of a topic, such as "+
				"persistent://public/default/orders: %w", err)
		}
	}
	if body.After != "" {
		id, err := brokerhttp.ParseID([]byte(body.After))
		if err != nil {
			return opts, err
		}
		opts.After = &id
	}
	properties, err := c.Cluster.Consumer.SubscriptionProperties(c.R.Context(), c.Topic, c.Subscription)
	if err != nil {
		return opts, err
	}
	letters, err := c.Cluster.Consumer.DeadLetters(c.R.Context(), c.Topic, c.Subscription, properties)
	if err != nil {
		return opts, err
	}
	if letters == nil {
		return opts, errs.Newf(errs.Precondition, "subscription %s has no redelivery limit, so it has no dead "+
			"letters; set maxRedeliverCount", c.Subscription)
	}
	opts.Letters = letters.Topic
	return opts, nil
}

// authorizeReplay checks that the caller may consume the dead letters and produce to the target. The second
// check does not depend on whether the target exists.
func (c *call) authorizeReplay(opts *messaging.ReplayOptions) error {
	topic, namespace, tenant, subscription := c.Topic, c.Namespace, c.Tenant, c.Subscription
	at := func(t names.Topic, subscription string) { // the audit record of a denial names this topic
		c.Topic, c.Namespace, c.Tenant, c.Subscription = t, t.Namespace, t.Namespace.Tenant, subscription
	}
	at(opts.Letters, messaging.ReplaySubscription)
	if err := c.Require(brokerhttp.PermitConsume); err != nil {
		return fmt.Errorf("reading the dead letters in %s: %w", opts.Letters, err)
	}
	at(opts.To, "")
	if err := c.Require(brokerhttp.PermitProduce); err != nil {
		return fmt.Errorf("replaying to %s: %w", opts.To, err)
	}
	c.Topic, c.Namespace, c.Tenant, c.Subscription = topic, namespace, tenant, subscription
	return nil
}
