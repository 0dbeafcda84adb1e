package adminapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/retry"
	"freshet/internal/broker/groups"
	"freshet/internal/surfaces/brokerhttp"
)

// A member of an ensemble lists the consumer groups that it coordinates. To list all
// groups it forwards the caller's own request to the other coordinators, so that each
// of them returns only the groups that the caller may see there. Each response names
// the journals of consumer groups that it covers. The list is returned only if the
// responses cover every journal, so it is complete even while groups move.

// headerJournals names the journals that a response to another member covers.
const headerJournals = "Freshet-Journals"

const (
	maxGroupList      = 64 << 20 // maximum size of one member's list, in bytes
	listTimeout       = 5 * time.Second
	listRetryInterval = 100 * time.Millisecond
)

var errListTooLong = errors.New("list of consumer groups from another member exceeds its size limit")

// allGroups lists the consumer groups of the tenants that the caller may see, from all
// members. It retries until the list is complete, at most for listTimeout.
func (c *call) allGroups(coordinator *groups.Coordinator, tenants []string) ([]groupBody, error) {
	deadline := time.Now().Add(listTimeout)
	for {
		list, journals, err := c.localGroups(coordinator, tenants)
		if err != nil {
			return nil, err
		}
		senders, forwarded, err := c.Cluster.Members.Coordinators(c.R)
		if err != nil {
			return nil, err
		}
		if forwarded {
			c.W.Header().Set(headerJournals, joinNumbers(journals))
			return list, nil
		}
		var failure error
		for _, send := range senders {
			more, remoteJournals, err := c.memberGroups(send)
			failure = errors.Join(failure, err)
			list, journals = append(list, more...), append(journals, remoteJournals...)
		}
		slices.Sort(journals)
		if len(slices.Compact(journals)) == groups.JournalCount {
			return sortGroups(list), nil
		}
		if failure == nil {
			failure = groups.ErrNotCoordinator // a journal moved between members during the calls
		}
		if time.Now().After(deadline) {
			return nil, errs.Newf(errs.Unavailable, "list of consumer groups would be incomplete, because "+
				"coordinators of some groups do not respond or have just started; try again: %w", failure)
		}
		if retry.Sleep(c.R.Context(), listRetryInterval) != nil {
			return nil, c.R.Context().Err()
		}
	}
}

// localGroups lists the groups that this member coordinates, and the journals that it
// coordinated before and after the listing.
func (c *call) localGroups(coordinator *groups.Coordinator,
	tenants []string,
) (list []groupBody, journals []int, err error) {
	before := coordinator.Journals()
	list = []groupBody{}
	for _, c.Tenant = range tenants {
		c.Group = ""
		denied := c.Require(seeGroupPermissions...)
		if denied != nil && errs.KindOf(denied) != errs.Denied {
			return nil, nil, denied
		}
		for _, g := range coordinator.List(c.Tenant) {
			c.Group = g.Key.Group
			visible := denied == nil
			if !visible {
				reads, err := coordinator.Reads(g.Key)
				visible = err == nil && c.sees(g.Key, reads)
			}
			if visible {
				list = append(list, groupBody{
					Kind: "StreamGroup", Tenant: g.Key.Tenant, GroupID: g.Key.Group, State: g.State, GroupType: g.Type,
					ProtocolType: g.ProtocolType,
				})
			}
		}
	}
	after := coordinator.Journals()
	return list, slices.DeleteFunc(before, func(i int) bool { return !slices.Contains(after, i) }), nil
}

// memberGroups requests the list of another member.
func (c *call) memberGroups(send brokerhttp.Sender) (list []groupBody, journals []int, err error) {
	var response bufferedResponse
	if err := send(&response, c.R); err != nil {
		return nil, nil, err
	}
	if response.tooLong {
		return nil, nil, errListTooLong
	}
	if response.status != http.StatusOK {
		return nil, nil, fmt.Errorf("listing the consumer groups of another member: status %d", response.status)
	}
	var body struct {
		Data []groupBody `json:"data"`
	}
	if err := json.Unmarshal(response.body.Bytes(), &body); err != nil {
		return nil, nil, fmt.Errorf("decoding the consumer groups of another member: %w", err)
	}
	return body.Data, splitNumbers(response.Header().Get(headerJournals)), nil
}

func joinNumbers(numbers []int) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ",")
}

func splitNumbers(text string) (numbers []int) {
	for part := range strings.SplitSeq(text, ",") {
		if n, err := strconv.Atoi(part); err == nil && n >= 0 && n < groups.JournalCount {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// bufferedResponse buffers the response of another member instead of sending it to the caller.
type bufferedResponse struct {
	header  http.Header
	status  int
	body    bytes.Buffer
	tooLong bool // the response exceeded maxGroupList
}

// Header implements http.ResponseWriter.
func (k *bufferedResponse) Header() http.Header {
	if k.header == nil {
		k.header = http.Header{}
	}
	return k.header
}

// WriteHeader implements http.ResponseWriter.
func (k *bufferedResponse) WriteHeader(status int) {
	if status >= http.StatusOK && k.status == 0 {
		k.status = status
	}
}

// Write implements http.ResponseWriter.
func (k *bufferedResponse) Write(b []byte) (int, error) {
	k.WriteHeader(http.StatusOK)
	if k.body.Len()+len(b) > maxGroupList {
		k.tooLong = true
		return 0, errListTooLong
	}
	return k.body.Write(b)
}

// sortGroups sorts the lists of several members by tenant and group and removes
// duplicates: a group that moves during the calls can be in two lists.
func sortGroups(list []groupBody) []groupBody {
	order := func(a, b groupBody) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.GroupID, b.GroupID))
	}
	slices.SortStableFunc(list, order)
	return slices.CompactFunc(list, func(a, b groupBody) bool { return order(a, b) == 0 })
}
