package messaging

import (
	"context"
	"errors"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
)

// Namespaces returns the namespaces of a tenant in order.
func (b *Broker) Namespaces(ctx context.Context, tenant string) ([]names.Namespace, error) {
	c, err := b.catalogue.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	if _, ok := c.tenants.Get(tenant); !ok {
		return nil, ErrNoTenant
	}
	list := []names.Namespace{}
	c.namespacesOf(tenant, func(n *namespace) bool {
		list = append(list, n.name)
		return true
	})
	return list, nil
}

// Namespace returns a namespace's policies. The caller must not modify them.
func (b *Broker) Namespace(ctx context.Context, name names.Namespace) (*Policies, error) {
	c, err := b.catalogue.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	ns, err := existingNamespace(c, name)
	if err != nil {
		return nil, err
	}
	return ns.policies, nil
}

// HasNamespace reports whether a namespace exists.
func (b *Broker) HasNamespace(ctx context.Context, name names.Namespace) (bool, error) {
	c, err := b.catalogue.Fresh(ctx)
	if err != nil {
		return false, err
	}
	_, ok := c.namespace(name)
	return ok, nil
}

func existingNamespace(c *catalogue, name names.Namespace) (*namespace, error) {
	if ns, ok := c.namespace(name); ok {
		return ns, nil
	}
	if _, ok := c.tenants.Get(name.Tenant); !ok {
		return nil, ErrNoTenant
	}
	return nil, ErrNoNamespace
}

// CreateNamespace creates a namespace of an existing tenant.
func (b *Broker) CreateNamespace(ctx context.Context, name names.Namespace, policies Policies) error {
	if _, err := names.NewNamespace(name.Tenant, name.Name); err != nil {
		return errs.Newf(errs.Invalid, "%w: %w", ErrName, err)
	}
	if err := policies.validate(&b.limits); err != nil {
		return err
	}
	_, err := b.catalogue.Update(ctx, func(c *catalogue) ([][]byte, error) {
		if _, ok := c.tenants.Get(name.Tenant); !ok {
			return nil, ErrNoTenant
		}
		if _, ok := c.namespace(name); ok {
			return nil, ErrNamespaceExists
		}
		if c.namespaces.Len() >= b.limits.Namespaces {
			return nil, errs.Newf(errs.Precondition, "%w: a cluster may have %d namespaces", ErrTopicLimit,
				b.limits.Namespaces)
		}
		return [][]byte{record{Op: opNamespace, Name: name.String(), Policies: &policies}.encode()}, nil
	})
	return err
}

// UpdateNamespace changes a namespace's policies. change may be called more than once and must
// depend on its argument only.
func (b *Broker) UpdateNamespace(ctx context.Context, name names.Namespace, change func(*Policies) error) error {
	c, err := b.catalogue.Update(ctx, func(c *catalogue) ([][]byte, error) {
		ns, err := existingNamespace(c, name)
		if err != nil {
			return nil, err
		}
		policies := ns.policies.clone()
		if err := change(&policies); err != nil {
			return nil, err
		}
		if err := policies.validate(&b.limits); err != nil {
			return nil, err
		}
		return [][]byte{record{Op: opNamespace, Name: name.String(), Policies: &policies}.encode()}, nil
	})
	if err != nil {
		return err
	}
	if ns, ok := c.namespace(name); ok && ns.pending != 0 {
		b.startConfigureNamespace(ctx, name)
	}
	return nil
}

// DeleteNamespace removes a namespace, and with force its topics too.
func (b *Broker) DeleteNamespace(ctx context.Context, name names.Namespace, force bool) error {
	if force {
		if err := b.clearNamespace(ctx, name); err != nil {
			return err
		}
	}
	_, err := b.catalogue.UpdateWhenDiskFull(ctx, func(c *catalogue) ([][]byte, error) {
		ns, err := existingNamespace(c, name)
		if err != nil {
			return nil, err
		}
		if ns.topics > 0 {
			return nil, ErrNamespaceBusy
		}
		return [][]byte{record{Op: opDropNamespace, Name: name.String()}.encode()}, nil
	})
	return err
}

func (b *Broker) clearNamespace(ctx context.Context, name names.Namespace) error {
	c, err := b.catalogue.Fresh(ctx)
	if err != nil {
		return err
	}
	if _, err := existingNamespace(c, name); err != nil {
		return err
	}
	var list []names.Topic
	c.topicsOf(name, func(t *topic) bool {
		list = append(list, t.name)
		return true
	})
	for _, t := range list {
		if err := b.DeleteTopic(ctx, t, true); err != nil && !errors.Is(err, ErrNoTopic) {
			return err
		}
	}
	return nil
}
