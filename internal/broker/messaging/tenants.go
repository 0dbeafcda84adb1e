package messaging

import (
	"context"
	"slices"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
)

const (
	maxTenantRoles    = 1000
	maxTenantClusters = 100
)

func (t *Tenant) validate() error {
	if err := names.CheckTenant(t.Name); err != nil {
		return errs.Newf(errs.Invalid, "%w: %w", ErrName, err)
	}
	if len(t.AdminRoles) > maxTenantRoles || len(t.AllowedClusters) > maxTenantClusters {
		return errs.Newf(errs.TooLarge, "%w: tenant has too many roles or clusters", ErrTooMuchData)
	}
	for _, s := range slices.Concat(t.AdminRoles, t.AllowedClusters) {
		if s == "" || len(s) > maxRoleName {
			return errs.Newf(errs.Invalid, "%w: role or cluster name is empty or longer than %d bytes",
				ErrPolicy, maxRoleName)
		}
	}
	return nil
}

// Tenants returns the names of all tenants in order.
func (cat *Catalogue) Tenants(ctx context.Context) ([]string, error) {
	c, err := cat.state.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	return c.tenants.Keys(), nil
}

// Tenant returns one tenant.
func (cat *Catalogue) Tenant(ctx context.Context, name string) (Tenant, error) {
	c, err := cat.state.Fresh(ctx)
	if err != nil {
		return Tenant{}, err
	}
	t, ok := c.tenants.Get(name)
	if !ok {
		return Tenant{}, ErrNoTenant
	}
	return *t, nil
}

// CreateTenant creates a tenant.
func (cat *Catalogue) CreateTenant(ctx context.Context, t Tenant) error {
	if err := t.validate(); err != nil {
		return err
	}
	_, err := cat.state.Update(ctx, func(c *catalogueState) ([][]byte, error) {
		if _, ok := c.tenants.Get(t.Name); ok {
			return nil, ErrTenantExists
		}
		if c.tenants.Len() >= cat.limits.Tenants {
			return nil, errs.Newf(errs.Precondition, "%w: a cluster may have %d tenants", ErrTopicLimit,
				cat.limits.Tenants)
		}
		return [][]byte{record{Op: opTenant, Tenant: &t}.encode()}, nil
	})
	return err
}

// UpdateTenant changes a tenant's roles and clusters. change may be called more than once and must
// depend on its argument only.
func (cat *Catalogue) UpdateTenant(ctx context.Context, name string, change func(*Tenant) error) error {
	_, err := cat.state.Update(ctx, func(c *catalogueState) ([][]byte, error) {
		before, ok := c.tenants.Get(name)
		if !ok {
			return nil, ErrNoTenant
		}
		t := Tenant{
			Name: name, AdminRoles: slices.Clone(before.AdminRoles),
			AllowedClusters: slices.Clone(before.AllowedClusters),
		}
		if err := change(&t); err != nil {
			return nil, err
		}
		if err := t.validate(); err != nil {
			return nil, err
		}
		return [][]byte{record{Op: opTenant, Tenant: &t}.encode()}, nil
	})
	return err
}

// DeleteTenant removes a tenant that has no namespaces.
func (cat *Catalogue) DeleteTenant(ctx context.Context, name string) error {
	_, err := cat.state.UpdateWhenDiskFull(ctx, func(c *catalogueState) ([][]byte, error) {
		if _, ok := c.tenants.Get(name); !ok {
			return nil, ErrNoTenant
		}
		busy := false
		c.namespacesOf(name, func(*namespace) bool {
			busy = true
			return false
		})
		if busy {
			return nil, ErrTenantBusy
		}
		return [][]byte{record{Op: opDropTenant, Name: name}.encode()}, nil
	})
	return err
}
