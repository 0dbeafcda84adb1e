package messaging

import (
	"context"
	"errors"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
)

// Namespaces returns the namespaces of a tenant in order.
func (cat *Catalogue) Namespaces(ctx context.Context, tenant string) ([]names.Namespace, error) {
	c, err := cat.state.Fresh(ctx)
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
func (cat *Catalogue) Namespace(ctx context.Context, name names.Namespace) (*Policies, error) {
	c, err := cat.state.Fresh(ctx)
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
func (cat *Catalogue) HasNamespace(ctx context.Context, name names.Namespace) (bool, error) {
	c, err := cat.state.Fresh(ctx)
	if err != nil {
		return false, err
	}
	_, ok := c.namespace(name)
	return ok, nil
}

// HasNamespaceCached reports whether the cached catalogue of this member has a namespace. Other members
// may have changed the catalogue since.
func (cat *Catalogue) HasNamespaceCached(name names.Namespace) bool {
	_, ok := cat.state.View().namespace(name)
	return ok
}

func existingNamespace(c *catalogueState, name names.Namespace) (*namespace, error) {
	if ns, ok := c.namespace(name); ok {
		return ns, nil
	}
	if _, ok := c.tenants.Get(name.Tenant); !ok {
		return nil, ErrNoTenant
	}
	return nil, ErrNoNamespace
}

// AutoCreatesTopics reports whether a namespace allows the automatic creation of topics.
func (cat *Catalogue) AutoCreatesTopics(ns names.Namespace) bool {
	space, ok := cat.state.View().namespace(ns)
	return ok && valueOr(space.policies.AutoTopicCreation, defaults.AutoTopicCreation).Allow
}

// CreateNamespace creates a namespace of an existing tenant. It returns a ShadowError if the names of
// existing topics begin with its name.
func (cat *Catalogue) CreateNamespace(ctx context.Context, name names.Namespace, policies Policies) error {
	if _, err := names.NewNamespace(name.Tenant, name.Name); err != nil {
		return errs.Newf(errs.Invalid, "%w: %w", ErrName, err)
	}
	if err := policies.validate(cat.limits); err != nil {
		return err
	}
	_, err := cat.state.Update(ctx, func(c *catalogueState) ([][]byte, error) {
		if _, ok := c.tenants.Get(name.Tenant); !ok {
			return nil, ErrNoTenant
		}
		if _, ok := c.namespace(name); ok {
			return nil, ErrNamespaceExists
		}
		if err := c.checkShadows(name); err != nil {
			return nil, err
		}
		if c.namespaces.Len() >= cat.limits.Namespaces {
			return nil, errs.Newf(errs.Precondition, "%w: a cluster may have %d namespaces", ErrTopicLimit,
				cat.limits.Namespaces)
		}
		return [][]byte{record{Op: opNamespace, Name: name.String(), Policies: &policies}.encode()}, nil
	})
	return err
}

// UpdateNamespace changes a namespace's policies. change may be called more than once and must
// depend on its argument only.
func (cat *Catalogue) UpdateNamespace(ctx context.Context, name names.Namespace, change func(*Policies) error) error {
	c, err := cat.state.Update(ctx, func(c *catalogueState) ([][]byte, error) {
		ns, err := existingNamespace(c, name)
		if err != nil {
			return nil, err
		}
		policies := ns.policies.clone()
		if err := change(&policies); err != nil {
			return nil, err
		}
		if err := policies.validate(cat.limits); err != nil {
			return nil, err
		}
		return [][]byte{record{Op: opNamespace, Name: name.String(), Policies: &policies}.encode()}, nil
	})
	if err != nil {
		return err
	}
	if ns, ok := c.namespace(name); ok && ns.pending != 0 {
		cat.topics.startConfigureNamespace(ctx, name)
	}
	return nil
}

// DeleteNamespace removes a namespace, and with force its topics too.
func (cat *Catalogue) DeleteNamespace(ctx context.Context, name names.Namespace, force bool) error {
	if force {
		if err := cat.clearNamespace(ctx, name); err != nil {
			return err
		}
	}
	_, err := cat.state.UpdateWhenDiskFull(ctx, func(c *catalogueState) ([][]byte, error) {
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

func (cat *Catalogue) clearNamespace(ctx context.Context, name names.Namespace) error {
	c, err := cat.state.Fresh(ctx)
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
		if err := cat.DeleteTopic(ctx, t, true); err != nil && !errors.Is(err, ErrNoTopic) {
			return err
		}
	}
	return nil
}
