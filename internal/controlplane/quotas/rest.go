// Package quotas serves the limits and usage of an organization as ResourceQuotas of core/v1, which
// kubectl describe quota can print (docs/spec/resources.md#quotas).
//
// An organization has one ResourceQuota, and each running cluster has one for callers that may read
// the cluster. The package stores nothing and accepts no writes: limits come from the server's
// configuration and from spec.config.custom of clusters, usage from package quota and from the
// stores of clusters and instances.
package quotas

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1internal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"freshet/internal/controlplane/events"
	"freshet/internal/controlplane/printers"
	"freshet/internal/ops/quota"
)

// organizationQuota is the name of an organization's quota; those of clusters are named
// cluster.<name>.
const (
	organizationQuota = "organization"
	clusterPrefix     = "cluster."
)

// Kinds provides the kinds whose objects are limited in number.
type Kinds interface {
	// Count returns the number of their objects in an organization.
	Count(ctx context.Context, organization string) (map[quota.Resource]int64, error)
	// KindOf returns the name of the kind that a quota limits.
	KindOf(limited quota.Resource) string
}

// REST is the resource resourcequotas: get and list.
type REST struct {
	Book     *quota.Organizations
	Kinds    Kinds
	Readable events.Readable
}

var (
	_ rest.Getter               = REST{}
	_ rest.Lister               = REST{}
	_ rest.Scoper               = REST{}
	_ rest.ShortNamesProvider   = REST{}
	_ rest.SingularNameProvider = REST{}
)

// New implements rest.Storage.
func (REST) New() runtime.Object { return &corev1.ResourceQuota{} }

// NewList implements rest.Lister.
func (REST) NewList() runtime.Object { return &corev1.ResourceQuotaList{} }

// Destroy implements rest.Storage.
func (REST) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (REST) NamespaceScoped() bool { return true }

// ShortNames implements rest.ShortNamesProvider.
func (REST) ShortNames() []string { return []string{"quota"} }

// GetSingularName implements rest.SingularNameProvider.
func (REST) GetSingularName() string { return "resourcequota" }

// ConvertToTable implements rest.TableConvertor.
func (REST) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return table.ConvertToTable(ctx, object, options)
}

var table = printers.Table{Columns: []printers.Column{{
	Name: "Used", Description: "Used amount and limit of each resource.",
	Value: func(obj runtime.Object) any {
		q := obj.(*corev1.ResourceQuota)
		var parts []string
		for r := range quota.Count {
			name := corev1.ResourceName(r.String())
			if limit, ok := q.Status.Hard[name]; ok {
				used := q.Status.Used[name]
				parts = append(parts, fmt.Sprintf("%s: %s/%s", name, used.String(), limit.String()))
			}
		}
		return strings.Join(parts, ", ")
	},
}}}

// Get reads one quota.
func (r REST) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	list, err := r.all(ctx, request.NamespaceValue(ctx))
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].Name == name {
			return &list[i], nil
		}
	}
	return nil, apierrors.NewNotFound(corev1.Resource("resourcequotas"), name)
}

// List returns the quotas of an organization or, for a system administrator, of every organization
// that was used since the server started.
func (r REST) List(ctx context.Context, _ *metav1internal.ListOptions) (runtime.Object, error) {
	out := &corev1.ResourceQuotaList{Items: []corev1.ResourceQuota{}}
	organizations := []string{request.NamespaceValue(ctx)}
	if organizations[0] == "" {
		organizations = nil
		r.Book.Each(func(o *quota.Organization) { organizations = append(organizations, o.Name()) })
	}
	for _, name := range organizations {
		list, err := r.all(ctx, name)
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, list...)
	}
	return out, nil
}

// all returns the quotas of an organization that the caller may see.
func (r REST) all(ctx context.Context, organization string) ([]corev1.ResourceQuota, error) {
	o := r.Book.Organization(organization)
	used, err := r.Kinds.Count(ctx, organization)
	if err != nil {
		return nil, err
	}
	list := []corev1.ResourceQuota{newQuota(organization, organizationQuota, o.Limits(),
		func(resource quota.Resource) int64 {
			if n, ok := used[resource]; ok {
				return n
			}
			return o.Used(resource)
		})}
	readable, kind := r.Readable(ctx, organization), r.Kinds.KindOf(quota.Clusters)
	for _, c := range o.Clusters() {
		if readable(corev1.ObjectReference{Kind: kind, Namespace: organization, Name: c.Name()}) {
			list = append(list, newQuota(organization, clusterPrefix+c.Name(),
				effectiveLimits(c.Limits(), o.Limits()), c.Used))
		}
	}
	return list, nil
}

// effectiveLimits returns the effective limits of a cluster: its own limits, or those of the organization.
// The rate of a cluster is measured only if the cluster has its own rate limit.
func effectiveLimits(own, organization quota.Limits) quota.Limits {
	for r, limit := range own {
		if all := organization[r]; !quota.Resource(r).IsRate() && all > 0 && (limit == 0 || all < limit) {
			own[r] = all
		}
	}
	return own
}

// newQuota creates one quota. A resource without a limit has usage only, and a rate without a limit is
// not measured.
func newQuota(organization, name string, limits quota.Limits, used func(quota.Resource) int64) corev1.ResourceQuota {
	hard, now := corev1.ResourceList{}, corev1.ResourceList{}
	for r, limit := range limits {
		r := quota.Resource(r)
		if name != organizationQuota && (r == quota.Clusters || r == quota.Instances) {
			continue
		}
		if limit > 0 {
			hard[corev1.ResourceName(r.String())] = *resource.NewQuantity(limit, format(r))
		}
		if limit > 0 || !r.IsRate() {
			now[corev1.ResourceName(r.String())] = *resource.NewQuantity(used(r), format(r))
		}
	}
	return corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: organization},
		Spec:       corev1.ResourceQuotaSpec{Hard: hard},
		Status:     corev1.ResourceQuotaStatus{Hard: hard.DeepCopy(), Used: now},
	}
}

func format(r quota.Resource) resource.Format {
	if r.IsBytes() {
		return resource.BinarySI
	}
	return resource.DecimalSI
}
