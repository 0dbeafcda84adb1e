package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// HistoryRange is how far a history goes back.
type HistoryRange string

// The ranges that the server keeps.
const (
	LastQuarterHour HistoryRange = "15m" // in steps of 15 seconds
	LastHour        HistoryRange = "1h"  // in steps of one minute
	LastDay         HistoryRange = "24h" // in steps of ten minutes
)

// History is the history of the statistics of a cluster, a topic, a subscription or a consumer group. The
// fields of values have one point for each step, oldest first. A point is nil if nothing was recorded, for
// example while the server was stopped. A field that does not apply is empty.
type History struct {
	Range       HistoryRange `json:"range"`
	StepSeconds int          `json:"stepSeconds"`
	Start       time.Time    `json:"start"` // of the first point
	// Recorded reports whether the server keeps a history: it does so for the busiest topics,
	// subscriptions and groups.
	Recorded bool `json:"recorded"`
	// Incomplete means that the part of a member of the ensemble is missing.
	Incomplete bool `json:"incomplete"`

	In          []*float64 `json:"in,omitempty"`          // messages per second; not of subscriptions and groups
	Out         []*float64 `json:"out,omitempty"`         // messages per second
	Errors      []*float64 `json:"errors,omitempty"`      // failures per second; not of groups
	Backlog     []*float64 `json:"backlog,omitempty"`     // messages; not of groups
	Lag         []*float64 `json:"lag,omitempty"`         // messages; only of groups
	StoredBytes []*float64 `json:"storedBytes,omitempty"` // not of groups; of a subscription, the bytes of its backlog
}

func historyQuery(of HistoryRange) url.Values {
	if of == "" {
		return nil
	}
	return url.Values{"range": {string(of)}}
}

// historyOf returns the history that a call decodes, or nil with its error.
func historyOf(call func(*History) error) (*History, error) {
	h := new(History)
	if err := call(h); err != nil {
		return nil, err
	}
	return h, nil
}

// History returns the history of the cluster; "" is LastHour. It needs the permission to read metrics.
func (c *Client) History(ctx context.Context, of HistoryRange) (*History, error) {
	return historyOf(func(h *History) error {
		return c.callJSON(ctx, &Request{
			Method: http.MethodGet, Path: c.ClusterPath(adminRoot + "history"), Query: historyQuery(of),
		}, nil, h)
	})
}

// History returns the history of the topic; "" is LastHour.
func (t *Topic) History(ctx context.Context, of HistoryRange) (*History, error) {
	return historyOf(func(h *History) error {
		return t.call(ctx, http.MethodGet, t.admin("/history"), historyQuery(of), nil, h)
	})
}

// History returns the history of the subscription; "" is LastHour.
func (s *Subscription) History(ctx context.Context, of HistoryRange) (*History, error) {
	return historyOf(func(h *History) error {
		return s.call(ctx, http.MethodGet, "/history", historyQuery(of), nil, h)
	})
}

// GroupHistory returns the history of a consumer group; "" is LastHour. The tenant is public when empty.
func (c *Client) GroupHistory(ctx context.Context, tenant, name string, of HistoryRange) (*History, error) {
	request, err := c.groupRequest(http.MethodGet, tenant, name, "/history")
	if err != nil {
		return nil, err
	}
	if of != "" {
		query := historyQuery(of)
		if tenant != "" {
			query.Set("tenant", tenant)
		}
		request.Query = query
	}
	return historyOf(func(h *History) error { return c.callJSON(ctx, request, nil, h) })
}
