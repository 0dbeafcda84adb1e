package client

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"
)

// GroupEntry is a consumer group of the Kafka protocol in a list.
type GroupEntry struct {
	Tenant       string `json:"tenant"`
	Name         string `json:"group_id"`
	State        string `json:"state"`
	ProtocolType string `json:"protocol_type"`
}

// GroupInfo is a consumer group with its members and offsets.
type GroupInfo struct {
	GroupEntry
	Protocol   string        `json:"protocol"`
	Generation int           `json:"generation"`
	Leader     string        `json:"leader"`
	Lag        int64         `json:"lag"`
	Members    []GroupMember `json:"members"`
	Offsets    []GroupOffset `json:"offsets"`
}

// GroupMember is a current member of a group.
type GroupMember struct {
	ID         string `json:"member_id"`
	InstanceID string `json:"instance_id"`
	ClientID   string `json:"client_id"`
	ClientHost string `json:"client_host"`
}

// GroupOffset is the committed offset of a group on a partition.
type GroupOffset struct {
	Topic       string `json:"topic_name"`
	Partition   int    `json:"partition_id"`
	Offset      int64  `json:"offset"`
	EndOffset   int64  `json:"end_offset"`
	Lag         int64  `json:"lag"`
	Metadata    string `json:"metadata"`
	CommittedAt int64  `json:"committed_at"` // milliseconds since 1970
}

// GroupPosition is a new position of a group on one partition of a topic, or on all partitions if
// Partition is nil. At is Earliest, Latest or a time. It is ignored if Offset is set.
type GroupPosition struct {
	Topic     string
	Partition *int
	Offset    *int64
	At        Position
}

// Groups returns the consumer groups that the caller may see, of one tenant, or of all if
// tenant is empty. ErrNotFound means that the cluster does not support the Kafka protocol.
func (c *Client) Groups(ctx context.Context, tenant string) ([]GroupEntry, error) {
	var list struct {
		Data []GroupEntry `json:"data"`
	}
	err := c.callJSON(ctx, &Request{
		Method: http.MethodGet, Path: c.ClusterPath(streamRoot + "groups"),
		Query: tenantQuery(tenant),
	}, nil, &list)
	return list.Data, err
}

// Group returns a consumer group. The tenant is public when empty.
func (c *Client) Group(ctx context.Context, tenant, name string) (*GroupInfo, error) {
	info := new(GroupInfo)
	request, err := c.groupRequest(http.MethodGet, tenant, name, "")
	if err != nil {
		return nil, err
	}
	return info, c.callJSON(ctx, request, nil, info)
}

// DeleteGroup deletes a group with its offsets. ErrConflict means that it has members.
func (c *Client) DeleteGroup(ctx context.Context, tenant, name string) error {
	request, err := c.groupRequest(http.MethodDelete, tenant, name, "")
	if err != nil {
		return err
	}
	return c.callJSON(ctx, request, nil, nil)
}

// ResetGroup sets the offsets of a group, and creates the group if it does not exist. The
// group must have no members.
func (c *Client) ResetGroup(ctx context.Context, tenant, name string, positions ...GroupPosition) error {
	type offset struct {
		Topic     string `json:"topic_name"`
		Partition *int   `json:"partition_id,omitempty"`
		Offset    *int64 `json:"offset,omitempty"`
		Position  string `json:"position,omitempty"`
		Timestamp *int64 `json:"timestamp,omitempty"`
	}
	var body struct {
		Offsets []offset `json:"offsets"`
	}
	for _, p := range positions {
		t := c.Topic(p.Topic)
		if t.err != nil {
			return t.err
		}
		at := offset{Topic: t.Name(), Partition: p.Partition, Offset: p.Offset}
		switch {
		case p.Offset != nil:
		case !p.At.time.IsZero():
			at.Timestamp = new(max(p.At.time.UnixMilli(), 0))
		case p.At.newest != 0:
			return errNewest
		case p.At.id != "":
			return errors.New("position of a consumer group must be an offset or a time, not a message id")
		default:
			at.Position = cmp.Or(p.At.word, Latest.word)
		}
		body.Offsets = append(body.Offsets, at)
	}
	request, err := c.groupRequest(http.MethodPut, tenant, name, "/offsets")
	if err != nil {
		return err
	}
	request.Idempotent = true
	return c.callJSON(ctx, request, body, nil)
}

// Committed returns the time when the offset was committed.
func (o *GroupOffset) Committed() time.Time { return millisTime(o.CommittedAt) }

func (c *Client) groupRequest(method, tenant, name, suffix string) (*Request, error) {
	if name == "" {
		return nil, errors.New("consumer group name is empty")
	}
	return &Request{
		Method: method, Path: c.ClusterPath(streamRoot + "groups/" + url.PathEscape(name) + suffix),
		Query: tenantQuery(tenant),
	}, nil
}

func tenantQuery(tenant string) url.Values {
	if tenant == "" {
		return nil
	}
	return url.Values{"tenant": {tenant}}
}
