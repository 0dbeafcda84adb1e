package messageapi

import (
	"net/http"

	"freshet/internal/access"
	"freshet/internal/names"
	"freshet/internal/web"
)

// operation is a call on messages.
type operation struct {
	method string
	route  string
	needs  access.Permission
	handle func(*call) error
	waits  bool // it may: not counted at the gate, the broker counts who waits
}

// The calls on messages, by the shape of their path behind tenant, namespace
// and topic. The first three are spec 2's, the others extensions.
const (
	shapeTopicMessage  = iota // …/message
	shapeTopicMessages        // …/messages
	shapeTail                 // …/tail
	shapeMessage              // …/{subscription}/message
	shapeMessages             // …/{subscription}/messages
	shapeNack                 // …/{subscription}/message/nack
	shapeExtend               // …/{subscription}/message/extend
	shapeCumulative           // …/{subscription}/message/cumulative
	shapeCount
)

const topicRoute = messageRoot + "{tenant}/{namespace}/{topic}/"

var operations = [shapeCount][]operation{
	shapeTopicMessage:  {{http.MethodPost, topicRoute + "message", permitProduce, (*call).produce, false}},
	shapeTopicMessages: {{http.MethodPost, topicRoute + "messages", permitProduce, (*call).produceBatch, false}},
	shapeTail:          {{http.MethodGet, topicRoute + "tail", permitConsume, (*call).tail, true}},
	shapeMessage: {
		{http.MethodPost, topicRoute + "{subscription}/message", permitConsume, (*call).consume, true},
		{http.MethodPut, topicRoute + "{subscription}/message", permitConsume, (*call).ack, false},
	},
	shapeMessages: {
		{http.MethodPost, topicRoute + "{subscription}/messages", permitConsume, (*call).consumeBatch, true},
		{http.MethodPut, topicRoute + "{subscription}/messages", permitConsume, (*call).ackBatch, false},
		{http.MethodGet, topicRoute + "{subscription}/messages", permitConsume, (*call).stream, true},
	},
	shapeNack:       {{http.MethodPost, topicRoute + "{subscription}/message/nack", permitConsume, (*call).nack, false}},
	shapeExtend:     {{http.MethodPost, topicRoute + "{subscription}/message/extend", permitConsume, (*call).extend, false}},
	shapeCumulative: {{http.MethodPut, topicRoute + "{subscription}/message/cumulative", permitConsume, (*call).ackCumulative, false}},
}

// shapeOf tells what a path behind the domain is. What it is depends on its
// length first, so a topic or subscription may be called message.
func shapeOf(list []string) (int, bool) {
	last := list[len(list)-1]
	switch len(list) {
	case 4:
		switch last {
		case "message":
			return shapeTopicMessage, true
		case "messages":
			return shapeTopicMessages, true
		case "tail":
			return shapeTail, true
		}
	case 5:
		switch last {
		case "message":
			return shapeMessage, true
		case "messages":
			return shapeMessages, true
		}
	case 6:
		if list[4] != "message" {
			return 0, false
		}
		switch last {
		case "nack":
			return shapeNack, true
		case "extend":
			return shapeExtend, true
		case "cumulative":
			return shapeCumulative, true
		}
	}
	return 0, false
}

// serveMessage routes a call on messages. The path may have the topic's domain
// in front; since no tenant can be called like one, the word settles it.
func (c *call) serveMessage() error {
	var path segments
	if err := path.split(c.r, messageRoot); err != nil {
		return err
	}
	list, domain := path.list[:path.n], names.Persistent
	if d, ok := names.ParseDomain(list[0]); ok {
		domain, list = d, list[1:]
	}
	if len(list) < 4 {
		return errNoRoute
	}
	shape, ok := shapeOf(list)
	if !ok {
		return errNoRoute
	}
	var op *operation
	for i := range operations[shape] {
		if operations[shape][i].method == c.r.Method {
			op = &operations[shape][i]
		}
	}
	if op == nil {
		c.allow = methodsOf(operations[shape])
		return errMethod
	}
	web.RecordOf(c.r.Context()).SetRoute(surfaceName, op.route)
	if !op.waits {
		if err := c.api.opts.Gate.Enter(); err != nil {
			return err
		}
		defer c.api.opts.Gate.Leave()
	}
	if err := c.enter(); err != nil {
		return err
	}
	if err := setDomain(string(domain)); err != nil {
		return err
	}
	if err := c.setTopic(list[0], list[1], list[2]); err != nil {
		return err
	}
	if len(list) > 4 {
		if err := c.setSubscription(list[3]); err != nil {
			return err
		}
	}
	if err := c.authorize(op.needs); err != nil {
		return err
	}
	return op.handle(c)
}

func methodsOf(list []operation) string {
	s := list[0].method
	for _, op := range list[1:] {
		s += ", " + op.method
	}
	return s
}
