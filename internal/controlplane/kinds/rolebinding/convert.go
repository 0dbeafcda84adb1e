package rolebinding

import (
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/reconcile"
	"freshet/internal/identity/access"
)

// convert converts a resource for package access.
func convert(o *object) access.Binding {
	b := access.Binding{
		Organization: o.Namespace,
		Name:         o.Name,
		RoleKind:     o.Spec.RoleRef.Kind,
		Role:         o.Spec.RoleRef.Name,
		CEL:          o.Spec.CEL,
		Restriction:  restriction(o.Spec.ResourceNameRestriction),
		Revision:     reconcile.Revision(o),
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
