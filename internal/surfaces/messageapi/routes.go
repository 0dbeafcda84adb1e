package messageapi

import (
	"net/http"
	"strings"

	"freshet/internal/base/web"
	"freshet/internal/identity/access"
	"freshet/internal/surfaces/brokerhttp"
)

// operation is a call on messages.
type operation struct {
	permission   access.Permission // "" if the call needs no token
	handle       func(*call) error
	subscription bool // the path names a subscription
	waits        bool // the call may wait: the broker limits it, not the limiter
	streams      bool // the call sends events and accepts tickets
}

const (
	topicPath = "/admin/rest/topics/v1/{tenant}/{namespace}/{topic}"
	subPath   = topicPath + "/{subscription}"

	ticketSuffix = "/ticket"

	// domainSegment is the index of the segment that may be the topic's domain.
	domainSegment = 4
)

// routes are the routes of the surface: those of docs/spec/messages.md and extensions.
var routes = []web.Route[operation]{
	produces(topicPath+"/message", (*call).produce),
	consumes(http.MethodPost, subPath+"/message", (*call).consume),
	settles(http.MethodPut, subPath+"/message", (*call).ack),

	// Extensions.
	produces(topicPath+"/messages", (*call).produceBatch),
	consumes(http.MethodPost, subPath+"/messages", (*call).consumeBatch),
	streams(subPath+"/messages", (*call).stream),
	settles(http.MethodPost, subPath+"/messages"+ticketSuffix, (*call).issueTicket),
	streams(topicPath+"/tail", (*call).tail),
	settles(http.MethodPost, topicPath+"/tail"+ticketSuffix, (*call).issueTicket),
	streams(topicPath+"/search", (*call).search),
	settles(http.MethodPost, topicPath+"/search"+ticketSuffix, (*call).issueTicket),
	settles(http.MethodPut, subPath+"/messages", (*call).ackBatch),
	settles(http.MethodPost, subPath+"/message/nack", (*call).nack),
	settles(http.MethodPost, subPath+"/message/extend", (*call).extend),
	settles(http.MethodPut, subPath+"/message/cumulative", (*call).ackCumulative),

	{Method: http.MethodGet, Pattern: "/admin/rest/openapi.yaml", Value: operation{handle: (*call).document}},
}

func produces(pattern string, handle func(*call) error) web.Route[operation] {
	return web.Route[operation]{
		Method: http.MethodPost, Pattern: pattern,
		Value: operation{permission: brokerhttp.PermitProduce, handle: handle},
	}
}

// consumes is a route that delivers messages and may wait for them.
func consumes(method, pattern string, handle func(*call) error) web.Route[operation] {
	r := settles(method, pattern, handle)
	r.Value.waits = true
	return r
}

// streams is a route that delivers messages as events.
func streams(pattern string, handle func(*call) error) web.Route[operation] {
	r := consumes(http.MethodGet, pattern, handle)
	r.Value.streams = true
	return r
}

// settles is a route on delivered messages.
func settles(method, pattern string, handle func(*call) error) web.Route[operation] {
	return web.Route[operation]{Method: method, Pattern: pattern, Value: operation{
		permission: brokerhttp.PermitConsume, handle: handle, subscription: strings.HasPrefix(pattern, subPath),
	}}
}
