// Package rolebinding puts role bindings into force: access.Policy is told in
// the store's write path, before a call answers, and again from the informer;
// the controller then says so in status.
package rolebinding

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"freshet/api/v1alpha1"
	"freshet/internal/access"
	"freshet/internal/controllers/loop"
	"freshet/internal/resources"
	"freshet/internal/resources/registry"
	kind "freshet/internal/resources/registry/rolebinding"
)

// Feed keeps the policy's bindings as the resources say.
type Feed struct {
	Policy *access.Policy
}

// Observer is the feed for the store's write path.
func (f Feed) Observer() registry.Observer[*v1alpha1.RoleBinding] {
	return registry.Observer[*v1alpha1.RoleBinding]{Created: f.Put, Updated: f.Put, Deleting: f.Remove, Deleted: f.Remove}
}

// Rules is what the kind asks while a binding is written.
func (f Feed) Rules() kind.Rules {
	return kind.Rules{
		CheckRole: func(kind, name string) bool {
			_, ok := access.FindRole(kind, name)
			return ok
		},
		CheckCEL: checkCEL,
		Check:    check,
		MayGrant: f.mayGrant,
	}
}

// check holds a binding against what access makes of it.
func check(o *v1alpha1.RoleBinding) *field.Error {
	b := convert(o)
	err := b.Validate()
	var at *access.FieldError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &at):
		return field.Invalid(field.NewPath(at.Field), field.OmitValueType{}, at.Detail)
	}
	return field.Invalid(field.NewPath("spec"), field.OmitValueType{}, err.Error())
}

func checkCEL(expression string) error {
	b := access.Binding{RoleKind: "ClusterRole", Role: access.Roles()[0].Name, CEL: expression}
	var at *access.FieldError
	if err := b.Validate(); errors.As(err, &at) && at.Field == "spec.cel" {
		return errors.New(at.Detail)
	}
	return nil
}

// MaxBindings is how many bindings an organization may have.
const MaxBindings = 10_000

// mayGrant holds for callers; the service itself grants what it likes.
func (f Feed) mayGrant(ctx context.Context, o *v1alpha1.RoleBinding, isNew bool) error {
	caller := resources.PrincipalFrom(ctx)
	if caller == nil {
		return nil
	}
	if n := f.Policy.Count(o.Namespace); isNew && n >= MaxBindings {
		return fmt.Errorf("exceeded quota: organization %s has %d role bindings, limited to %d", o.Namespace, n, MaxBindings)
	}
	return f.Policy.MayGrant(caller, convert(o))
}

// Put tells the policy what a binding is now.
func (f Feed) Put(o *v1alpha1.RoleBinding) {
	if o.DeletionTimestamp != nil && (o.DeletionGracePeriodSeconds == nil || *o.DeletionGracePeriodSeconds == 0) {
		f.Remove(o)
		return
	}
	// A binding that does not compile grants nothing; the controller says so.
	_ = f.Policy.SetBinding(convert(o))
}

// Remove ends a binding that is gone.
func (f Feed) Remove(o *v1alpha1.RoleBinding) {
	f.Policy.DeleteBinding(o.Namespace, o.Name, loop.Revision(o))
}

// convert brings a resource into the form that access compiles.
func convert(o *v1alpha1.RoleBinding) access.Binding {
	b := access.Binding{
		Organization: o.Namespace,
		Name:         o.Name,
		RoleKind:     o.Spec.RoleRef.Kind,
		Role:         o.Spec.RoleRef.Name,
		CEL:          o.Spec.CEL,
		Restriction:  restriction(o.Spec.ResourceNameRestriction),
		Revision:     loop.Revision(o),
	}
	for _, s := range o.Spec.Subjects {
		b.Subjects = append(b.Subjects, access.Subject{Kind: s.Kind, Name: s.Name, Organization: s.Namespace})
	}
	for _, n := range o.Spec.ResourceNames {
		b.ResourceNames = append(b.ResourceNames, access.Restriction{
			Organization: n.Organization, Instance: n.Instance, Cluster: n.Cluster,
			Tenant: n.Tenant, Namespace: n.Namespace, TopicDomain: n.TopicDomain, Topic: n.TopicName,
			Subscription: n.Subscription, ServiceAccount: n.ServiceAccount, APIKey: n.APIKey, Secret: n.Secret,
		})
	}
	return b
}

func restriction(r *v1alpha1.ResourceNameRestriction) *access.Restriction {
	if r == nil {
		return nil
	}
	out := &access.Restriction{}
	if c := r.Common; c != nil {
		out.Organization, out.Instance, out.Cluster = c.Organization, c.Instance, c.Cluster
		out.Tenant, out.Namespace, out.Topic = c.Tenant, c.Namespace, c.Topic
	}
	if m := r.Messaging; m != nil {
		if m.Topic != nil {
			out.TopicDomain = m.Topic.Domain
		}
		out.Subscription = nameOf(m.Subscription)
	}
	if s := r.Schema; s != nil {
		out.Subject = s.Subject
	}
	if c := r.Cloud; c != nil {
		out.ServiceAccount, out.APIKey, out.Secret = nameOf(c.ServiceAccount), nameOf(c.APIKey), nameOf(c.Secret)
	}
	return out
}

func nameOf(n *v1alpha1.NameRestriction) string {
	if n == nil {
		return ""
	}
	return n.Name
}
