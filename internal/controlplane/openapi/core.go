// Package openapi contains the OpenAPI definitions of the objects that the resource API serves.
// Those of our own types are generated. Those of the few Kubernetes types that the API also serves
// are written here, because generation would include all of core/v1.
package openapi

import (
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Core defines Namespace, Event and ResourceQuota.
func Core(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	d := definer{ref}
	event := []property{
		d.text("reason", "What happened, in one word."), d.text("type", "Normal or Warning."),
		d.text("action", "The action of the controller."),
		d.text("reportingInstance", "The replica that reports it."),
		d.refer("related", corev1.ObjectReference{}.OpenAPIModelName(), "A second object."),
		d.refer("eventTime", metav1.MicroTime{}.OpenAPIModelName(), "When it was first observed."),
	}
	return map[string]common.OpenAPIDefinition{
		corev1.Namespace{}.OpenAPIModelName(): d.kind("Namespace is an organization.",
			d.refer("spec", corev1.NamespaceSpec{}.OpenAPIModelName(), "Empty."),
			d.refer("status", corev1.NamespaceStatus{}.OpenAPIModelName(), "The state of the organization.")),
		corev1.NamespaceSpec{}.OpenAPIModelName(): d.object("NamespaceSpec is empty.",
			d.texts("finalizers", "Not used.")),
		corev1.NamespaceStatus{}.OpenAPIModelName(): d.object("NamespaceStatus is the state of an organization.",
			d.text("phase", "Active.")),
		corev1.NamespaceList{}.OpenAPIModelName(): d.list("NamespaceList is a list of organizations.",
			corev1.Namespace{}.OpenAPIModelName()),

		corev1.ResourceQuota{}.OpenAPIModelName(): d.kind(
			"ResourceQuota is the limits and the usage of an organization or of a cluster.",
			d.refer("spec", corev1.ResourceQuotaSpec{}.OpenAPIModelName(), "The limits."),
			d.refer("status", corev1.ResourceQuotaStatus{}.OpenAPIModelName(), "The limits and the usage.")),
		corev1.ResourceQuotaSpec{}.OpenAPIModelName(): d.object(
			"ResourceQuotaSpec is the limits of the server's configuration.",
			d.quantities("hard", "Limits, by resource.")),
		corev1.ResourceQuotaStatus{}.OpenAPIModelName(): d.object("ResourceQuotaStatus is limits and usage.",
			d.quantities("hard", "Limits, by resource."), d.quantities("used", "Usage, by resource.")),
		corev1.ResourceQuotaList{}.OpenAPIModelName(): d.list("ResourceQuotaList is a list of quotas.",
			corev1.ResourceQuota{}.OpenAPIModelName()),

		corev1.Event{}.OpenAPIModelName(): d.kind("Event is a step of a controller. It is kept for an hour.",
			append([]property{
				d.refer("involvedObject", corev1.ObjectReference{}.OpenAPIModelName(), "What it happened to."),
				d.text("message", "What happened."), d.text("reportingComponent", "The component that reports it."),
				d.refer("source", corev1.EventSource{}.OpenAPIModelName(), "The component that reports it."),
				d.number("count", "How often it happened."),
				d.refer("firstTimestamp", metav1.Time{}.OpenAPIModelName(), "When it first happened."),
				d.refer("lastTimestamp", metav1.Time{}.OpenAPIModelName(), "When it last happened."),
				d.refer("series", corev1.EventSeries{}.OpenAPIModelName(), "Not used."),
			}, event...)...),
		corev1.EventList{}.OpenAPIModelName(): d.list("EventList is a list of events.",
			corev1.Event{}.OpenAPIModelName()),
		corev1.EventSource{}.OpenAPIModelName(): d.object("EventSource is the component that reports an event.",
			d.text("component", "The component."), d.text("host", "The machine.")),
		corev1.EventSeries{}.OpenAPIModelName(): d.object("EventSeries is a series of events.",
			d.number("count", "How often."),
			d.refer("lastObservedTime", metav1.MicroTime{}.OpenAPIModelName(), "When last.")),
		corev1.ObjectReference{}.OpenAPIModelName(): d.object("ObjectReference names an object.",
			d.text("apiVersion", "Group and version."), d.text("kind", "Kind."), d.text("namespace", "Organization."),
			d.text("name", "Name."),
			d.text("uid", "UID."), d.text("resourceVersion", "Version."), d.text("fieldPath", "Part of the object.")),

		eventsv1.Event{}.OpenAPIModelName(): d.kind("Event is a step of a controller. It is kept for an hour.",
			append([]property{
				d.refer("regarding", corev1.ObjectReference{}.OpenAPIModelName(), "What it happened to."),
				d.text("note", "What happened."), d.text("reportingController", "The component that reports it."),
				d.refer("deprecatedSource", corev1.EventSource{}.OpenAPIModelName(), "The component that reports it."),
				d.number("deprecatedCount", "How often it happened."),
				d.refer("deprecatedFirstTimestamp", metav1.Time{}.OpenAPIModelName(), "When it first happened."),
				d.refer("deprecatedLastTimestamp", metav1.Time{}.OpenAPIModelName(), "When it last happened."),
				d.refer("series", eventsv1.EventSeries{}.OpenAPIModelName(), "Not used."),
			}, event...)...),
		eventsv1.EventList{}.OpenAPIModelName(): d.list("EventList is a list of events.",
			eventsv1.Event{}.OpenAPIModelName()),
		eventsv1.EventSeries{}.OpenAPIModelName(): d.object("EventSeries is a series of events.",
			d.number("count", "How often."),
			d.refer("lastObservedTime", metav1.MicroTime{}.OpenAPIModelName(), "When last.")),
	}
}

// property is one field of an object, by name.
type property struct {
	name   string
	schema spec.Schema
	uses   string // the model that it refers to
}

type definer struct{ ref common.ReferenceCallback }

func (definer) plain(name, kind, description string) property {
	return property{
		name:   name,
		schema: spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{kind}, Description: description}},
	}
}

func (d definer) text(name, description string) property { return d.plain(name, "string", description) }

func (d definer) number(name, description string) property {
	p := d.plain(name, "integer", description)
	p.schema.Format = "int32"
	return p
}

func (d definer) texts(name, description string) property {
	p := d.plain(name, "array", description)
	p.schema.Items = &spec.SchemaOrArray{Schema: &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"string"}}}}
	return p
}

func (d definer) quantities(name, description string) property {
	model := resource.Quantity{}.OpenAPIModelName()
	p := d.plain(name, "object", description)
	p.uses = model
	p.schema.AdditionalProperties = &spec.SchemaOrBool{
		Allows: true,
		Schema: &spec.Schema{SchemaProps: spec.SchemaProps{Ref: d.ref(model)}},
	}
	return p
}

func (d definer) refer(name, model, description string) property {
	return property{name: name, uses: model, schema: spec.Schema{SchemaProps: spec.SchemaProps{
		Description: description, Default: map[string]any{}, Ref: d.ref(model),
	}}}
}

func (definer) object(description string, properties ...property) common.OpenAPIDefinition {
	out := common.OpenAPIDefinition{Schema: spec.Schema{SchemaProps: spec.SchemaProps{
		Type: []string{"object"}, Description: description, Properties: map[string]spec.Schema{},
	}}}
	for _, p := range properties {
		out.Schema.Properties[p.name] = p.schema
		if p.uses != "" {
			out.Dependencies = append(out.Dependencies, p.uses)
		}
	}
	return out
}

// kind defines an object with kind, apiVersion and metadata.
func (d definer) kind(description string, properties ...property) common.OpenAPIDefinition {
	return d.object(description, append(properties,
		d.text("kind", "Kind of the object."), d.text("apiVersion", "Group and version."),
		d.refer("metadata", metav1.ObjectMeta{}.OpenAPIModelName(), "Name, labels and the like."))...)
}

func (d definer) list(description, item string) common.OpenAPIDefinition {
	items := d.plain("items", "array", "The objects.")
	items.uses = item
	items.schema.Items = &spec.SchemaOrArray{Schema: &spec.Schema{SchemaProps: spec.SchemaProps{
		Default: map[string]any{}, Ref: d.ref(item),
	}}}
	out := d.object(description, items, d.text("kind", "Kind of the list."), d.text("apiVersion", "Group and version."),
		d.refer("metadata", metav1.ListMeta{}.OpenAPIModelName(), "Version and position of the list."))
	out.Schema.Required = []string{"items"}
	return out
}
