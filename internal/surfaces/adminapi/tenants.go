package adminapi

import (
	"net/http"
	"slices"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
	"freshet/internal/surfaces/brokerhttp"
	"freshet/internal/surfaces/pipeline"
)

var errForceTenant = errs.New(errs.Precondition,
	"tenant cannot be deleted together with its namespaces; delete the namespaces first")

// visibility decides which items of a list the caller may see. all is set if the caller may
// list everything; otherwise why is the denial.
type visibility struct {
	c      *call
	all    bool
	denial error
}

// visibilityOf prepares a list of one kind of resource. A caller with the list permission sees
// all items, other callers those that they may describe.
func (c *call) visibilityOf(resource string) (*visibility, error) {
	err := c.Require(access.Permission("messaging." + resource + ".list"))
	if err != nil && errs.KindOf(err) != errs.Denied {
		return nil, err
	}
	return &visibility{c: c, all: err == nil, denial: err}, nil
}

// allows reports whether the caller may see the item that the fields of sub name.
func (v *visibility) allows(sub brokerhttp.Call, permissions ...access.Permission) bool {
	return v.all || sub.Require(permissions...) == nil
}

// denialIfEmpty returns the denial if the caller may see no item of the list.
func (v *visibility) denialIfEmpty(shown int) error {
	if shown == 0 && !v.all {
		return v.denial
	}
	return nil
}

// itemCall returns a copy of the call whose scope is an item of a list.
func (c *call) itemCall(tenant string, ns names.Namespace, topic names.Topic) brokerhttp.Call {
	return brokerhttp.Call{
		Call:    pipeline.Call{R: c.R, Surface: c.Surface, Principal: c.Principal},
		Cluster: c.Cluster, Tenant: tenant, Namespace: ns, Topic: topic,
	}
}

// clusterNames returns the names that a tenant may use for this cluster. Pulsar calls a
// cluster of one machine standalone, and many scripts rely on that.
func (c *call) clusterNames() []string {
	list := []string{"standalone"}
	if name := c.Cluster.Scope.Cluster; name != "" && name != "standalone" {
		list = []string{name, "standalone"}
	}
	return list
}

func (c *call) listClusters() error { return c.JSON(http.StatusOK, c.clusterNames()[:1]) }

func (c *call) listTenants() error {
	visible, err := c.visibilityOf("tenants")
	if err != nil {
		return err
	}
	all, err := c.Cluster.Catalogue.Tenants(c.R.Context())
	if err != nil {
		return err
	}
	list := []string{}
	for _, name := range all {
		if visible.allows(c.itemCall(name, names.Namespace{}, names.Topic{}), need("tenants", "describe")...) {
			list = append(list, name)
		}
	}
	if err := visible.denialIfEmpty(len(list)); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, list)
}

// tenantBody is Pulsar's TenantInfo.
type tenantBody struct {
	AdminRoles      []string `json:"adminRoles"`
	AllowedClusters []string `json:"allowedClusters"`
}

func (c *call) getTenant() error {
	t, err := c.Cluster.Catalogue.Tenant(c.R.Context(), c.Tenant)
	if err != nil {
		return err
	}
	body := tenantBody{AdminRoles: t.AdminRoles, AllowedClusters: t.AllowedClusters}
	if body.AdminRoles == nil {
		body.AdminRoles = []string{}
	}
	if len(body.AllowedClusters) == 0 {
		body.AllowedClusters = c.clusterNames()[:1]
	}
	return c.JSON(http.StatusOK, body)
}

// tenantOf decodes a tenant from the body. An empty body means the defaults. A body
// without clusters, or with a cluster other than this one, is rejected as in Pulsar.
func (c *call) tenantOf() (messaging.Tenant, error) {
	var body tenantBody
	ok, err := c.Decode(&body, maxAdminBody)
	if err != nil {
		return messaging.Tenant{}, err
	}
	if !ok {
		body.AllowedClusters = c.clusterNames()[:1]
	}
	if len(body.AllowedClusters) == 0 {
		return messaging.Tenant{}, errs.Newf(errs.Precondition, "%w: clusters can not be empty", messaging.ErrPolicy)
	}
	for _, cluster := range body.AllowedClusters {
		if !slices.Contains(c.clusterNames(), cluster) {
			return messaging.Tenant{},
				errs.Newf(errs.Precondition, "%w: cluster %q does not exist", messaging.ErrPolicy, cluster)
		}
	}
	return messaging.Tenant{Name: c.Tenant, AdminRoles: body.AdminRoles, AllowedClusters: body.AllowedClusters}, nil
}

func (c *call) createTenant() error {
	t, err := c.tenantOf()
	if err != nil {
		return err
	}
	if err := c.authorizeAdminChange(nil, t.AdminRoles); err != nil {
		return c.RecordDenial(err)
	}
	return c.doneWithWarnings(c.Cluster.Catalogue.CreateTenant(c.R.Context(), t), t.AdminRoles...)
}

func (c *call) updateTenant() error {
	t, err := c.tenantOf()
	if err != nil {
		return err
	}
	err = c.Cluster.Catalogue.UpdateTenant(c.R.Context(), c.Tenant, func(stored *messaging.Tenant) error {
		if err := c.authorizeAdminChange(stored.AdminRoles, t.AdminRoles); err != nil {
			return err
		}
		*stored = t
		return nil
	})
	return c.doneWithWarnings(err, t.AdminRoles...)
}

func (c *call) deleteTenant() error {
	if c.queryFlag("force") {
		return brokerhttp.WithStatus(http.StatusMethodNotAllowed, errForceTenant)
	}
	return c.done(c.Cluster.Catalogue.DeleteTenant(c.R.Context(), c.Tenant))
}
