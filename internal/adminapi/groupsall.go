package adminapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"freshet/internal/brokerhttp"
	"freshet/internal/errs"
)

// A member of a group lists the consumer groups that it coordinates. For all of them
// the other coordinators are asked the same, by the caller's own request: what they
// show is what the caller may see there.

// maxGroupList bounds the list of one member.
const maxGroupList = 64 << 20

var errListTooLong = errors.New("list of consumer groups is too long")

// groupsElsewhere lists the consumer groups that other members coordinate. A list that
// would lack some is refused.
func (c *call) groupsElsewhere() ([]groupBody, error) {
	if c.Cluster.Coordinators == nil {
		return nil, nil
	}
	senders, err := c.Cluster.Coordinators(c.R)
	if err != nil {
		return nil, err
	}
	var all []groupBody
	for _, send := range senders {
		list, err := c.groupsAt(send)
		if err != nil {
			return nil, errs.Newf(errs.Unavailable, "the list of consumer groups would not be complete, because a member that coordinates some does not answer; try again: %w", err)
		}
		all = append(all, list...)
	}
	return all, nil
}

// groupsAt asks one member.
func (c *call) groupsAt(send brokerhttp.Sender) ([]groupBody, error) {
	var answer kept
	if err := send(&answer, c.R); err != nil {
		return nil, err
	}
	if answer.status != http.StatusOK || answer.full {
		return nil, fmt.Errorf("it answers %d", answer.status)
	}
	var list struct {
		Data []groupBody `json:"data"`
	}
	if err := json.Unmarshal(answer.body.Bytes(), &list); err != nil {
		return nil, fmt.Errorf("its answer cannot be read: %w", err)
	}
	return list.Data, nil
}

// kept is an answer that is not for the caller.
type kept struct {
	header http.Header
	status int
	body   bytes.Buffer
	full   bool // it was longer
}

// Header implements http.ResponseWriter.
func (k *kept) Header() http.Header {
	if k.header == nil {
		k.header = http.Header{}
	}
	return k.header
}

// WriteHeader implements http.ResponseWriter.
func (k *kept) WriteHeader(status int) {
	if status >= http.StatusOK && k.status == 0 {
		k.status = status
	}
}

// Write implements http.ResponseWriter.
func (k *kept) Write(b []byte) (int, error) {
	k.WriteHeader(http.StatusOK)
	if k.body.Len()+len(b) > maxGroupList {
		k.full = true
		return 0, errListTooLong
	}
	return k.body.Write(b)
}

// sortGroups brings the lists of several members into one order, each group once: one
// may have moved while they were asked.
func sortGroups(list []groupBody) []groupBody {
	order := func(a, b groupBody) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.GroupID, b.GroupID))
	}
	slices.SortStableFunc(list, order)
	return slices.CompactFunc(list, func(a, b groupBody) bool { return order(a, b) == 0 })
}
