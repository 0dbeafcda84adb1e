// Package access answers one question: may this principal do this to that?
//
// It owns permissions, predefined roles, bindings and their restrictions, all
// held in memory. It does not know who is calling (that is identity), does not
// read resources itself (controllers feed it) and does not speak HTTP.
package access

// Permission is what a call needs, in the form SERVICE.RESOURCE.VERB, for
// example messaging.topics.produce. Services are cloud, messaging, stream and
// schema; verbs create, describe, list, update, delete, produce, consume and
// manage.
type Permission string

// Scope names the thing a permission is wanted on. Empty fields mean the call
// is not about something that small; permissions inherit downwards.
type Scope struct {
	Organization   string
	Instance       string
	Cluster        string
	Tenant         string
	Namespace      string
	TopicDomain    string
	Topic          string
	Subscription   string
	Subject        string // of the schema registry
	ServiceAccount string
	APIKey         string
}
