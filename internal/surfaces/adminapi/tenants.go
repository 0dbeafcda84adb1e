package adminapi

import (
	"net/http"
	"slices"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
	"freshet/internal/surfaces/brokerhttp"
)

var errForce = errs.New(errs.Precondition,
	"deleting a tenant with all its namespaces is not allowed; delete these first")

// visible asks whether the caller may do something with a thing beneath what
// the call is about, and remembers that the whole was allowed.
type visible struct {
	c   *call
	all bool
	why error
}

// see prepares to show things of one kind: those who may list all of them see
// all, others what they may describe.
func (c *call) see(resource string) (*visible, error) {
	err := c.Authorize(access.Permission("messaging." + resource + ".list"))
	if err != nil && errs.KindOf(err) != errs.Denied {
		return nil, err
	}
	return &visible{c: c, all: err == nil, why: err}, nil
}

// allows reports whether the thing that the fields of sub name may be seen.
func (v *visible) allows(sub brokerhttp.Call, wanted ...access.Permission) bool {
	return v.all || sub.Authorize(wanted...) == nil
}

// none is the error of a list of which nothing may be seen.
func (v *visible) none(shown int) error {
	if shown == 0 && !v.all {
		return v.why
	}
	return nil
}

// beneath is the call on something smaller.
func (c *call) beneath(tenant string, ns names.Namespace, topic names.Topic) brokerhttp.Call {
	return brokerhttp.Call{
		R: c.R, Options: c.Options, Cluster: c.Cluster, Principal: c.Principal,
		Tenant: tenant, Namespace: ns, Topic: topic,
	}
}

// clusterNames are the names a tenant may give to this cluster. Pulsar calls a
// cluster of one machine standalone, and so do many scripts.
func (c *call) clusterNames() []string {
	list := []string{"standalone"}
	if name := c.Cluster.Scope.Cluster; name != "" && name != "standalone" {
		list = []string{name, "standalone"}
	}
	return list
}

func (c *call) listClusters() error { return c.JSON(http.StatusOK, c.clusterNames()[:1]) }

func (c *call) listTenants() error {
	seen, err := c.see("tenants")
	if err != nil {
		return err
	}
	all, err := c.Broker().Tenants(c.R.Context())
	if err != nil {
		return err
	}
	list := []string{}
	for _, name := range all {
		if seen.allows(c.beneath(name, names.Namespace{}, names.Topic{}), need("tenants", "describe")...) {
			list = append(list, name)
		}
	}
	if err := seen.none(len(list)); err != nil {
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
	t, err := c.Broker().Tenant(c.R.Context(), c.Tenant)
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

// tenantOf reads a tenant out of the body. No body at all means the defaults;
// one without clusters, or with others than this, is refused as in Pulsar.
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
	if err := c.mayChangeAdmins(nil, t.AdminRoles); err != nil {
		return c.Refused(err)
	}
	return c.doneGranting(c.Broker().CreateTenant(c.R.Context(), t), t.AdminRoles...)
}

func (c *call) updateTenant() error {
	t, err := c.tenantOf()
	if err != nil {
		return err
	}
	return c.doneGranting(c.Broker().UpdateTenant(c.R.Context(), c.Tenant, func(stored *messaging.Tenant) error {
		if err := c.mayChangeAdmins(stored.AdminRoles, t.AdminRoles); err != nil {
			return err
		}
		*stored = t
		return nil
	}), t.AdminRoles...)
}

func (c *call) deleteTenant() error {
	if c.flag("force") {
		return brokerhttp.WithStatus(http.StatusMethodNotAllowed, errForce)
	}
	return c.done(c.Broker().DeleteTenant(c.R.Context(), c.Tenant))
}
