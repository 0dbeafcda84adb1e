package messageapi

import (
	"strings"
	"time"

	"freshet/internal/identity"
)

// RouteInfo describes a route, so that a test can compare it with the OpenAPI
// document.
type RouteInfo struct {
	Method     string
	Pattern    string
	Permission string
	Extension  bool // an extension (docs/spec/messages.md#m12)
}

// Routes lists every route except that of the OpenAPI document.
func Routes() []RouteInfo {
	var list []RouteInfo
	for _, r := range routes {
		if r.Value.permission != "" {
			list = append(list, RouteInfo{
				r.Method, r.Pattern, string(r.Value.permission),
				!strings.HasSuffix(r.Pattern, "/message"),
			})
		}
	}
	return list
}

// Tickets are tickets for one stream, without the surface.
type Tickets struct{ t tickets }

// NewTickets returns an empty set.
func NewTickets() *Tickets { return &Tickets{} }

// Issue returns a new ticket.
func (t *Tickets) Issue(principal *identity.Principal) (string, error) {
	text, _, err := t.t.issue(principal, stream{pattern: "p"}, time.Now())
	return text, err
}

// Redeem uses a ticket.
func (t *Tickets) Redeem(text string) error {
	_, err := t.t.redeem(text, stream{pattern: "p"}, time.Now())
	return err
}
