package garbage

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// byOwner is the informers' index from an owner's UID to its dependents.
const byOwner = "owner"

// item identifies an object in the queue.
type item struct {
	resource  schema.GroupVersionResource
	namespace string
	name      string
	uid       types.UID
}

func indexByOwner(obj any) ([]string, error) {
	object, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	refs := object.GetOwnerReferences()
	uids := make([]string, 0, len(refs))
	for _, ref := range refs {
		uids = append(uids, string(ref.UID))
	}
	return uids, nil
}

// node is an object together with its resource.
type node struct {
	*metav1.PartialObjectMetadata
	resource schema.GroupVersionResource
}

func (n node) item() item {
	return item{resource: n.resource, namespace: n.Namespace, name: n.Name, uid: n.UID}
}

func (n node) hasFinalizer(name string) bool { return slices.Contains(n.Finalizers, name) }

// waitsForDependents reports whether the object is in foreground deletion.
func (n node) waitsForDependents() bool {
	return n.DeletionTimestamp != nil && n.hasFinalizer(metav1.FinalizerDeleteDependents)
}

// refersTo reports whether a reference is to this owner. The UID alone is not enough: the permission to block an
// owner's deletion is checked for the kind and name in the reference.
func (c *Controller) refersTo(ref metav1.OwnerReference, owner node) bool {
	kind, served := c.kindOf(ref)
	return served && kind.Resource == owner.resource && ref.Name == owner.Name && ref.UID == owner.UID
}

// blocks reports whether a dependent blocks the deletion of the owner.
func (c *Controller) blocks(dependent, owner node) bool {
	return slices.ContainsFunc(dependent.OwnerReferences, func(ref metav1.OwnerReference) bool {
		return c.refersTo(ref, owner) && ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
	})
}

// belongsToAnother reports whether the object has owners of a kind, but not this one: it was
// created for an earlier object of the same name.
func (n node) belongsToAnother(kind string, owner types.UID) bool {
	other := false
	for _, ref := range n.OwnerReferences {
		if ref.Kind != kind {
			continue
		}
		if ref.UID == owner {
			return false
		}
		other = true
	}
	return other
}

// find reads an object from the cache.
func (c *Controller) find(it item) (node, bool) {
	obj, ok, err := c.informers[it.resource].GetIndexer().GetByKey(key(it.namespace, it.name))
	if err != nil || !ok {
		return node{}, false
	}
	return node{obj.(*metav1.PartialObjectMetadata), it.resource}, true
}

// dependents lists the objects that reference the owner, in its namespace or, for a cluster-scoped
// owner, in all.
func (c *Controller) dependents(owner node) []node {
	var result []node
	for resource, informer := range c.informers {
		objects, err := informer.GetIndexer().ByIndex(byOwner, string(owner.UID))
		if err != nil {
			continue
		}
		for _, obj := range objects {
			dependent := node{obj.(*metav1.PartialObjectMetadata), resource}
			if owner.Namespace == "" || owner.Namespace == dependent.Namespace {
				result = append(result, dependent)
			}
		}
	}
	return result
}

func key(namespace, name string) string {
	return cache.ObjectName{Namespace: namespace, Name: name}.String()
}
