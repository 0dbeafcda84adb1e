package garbage

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
)

// ownership groups an object's owner references by the state of the owner.
type ownership struct {
	existing []metav1.OwnerReference // the owner exists, or is of a kind that this server does not serve
	deleting []metav1.OwnerReference // the owner is being deleted in the foreground
	missing  []metav1.OwnerReference
}

// collectDependent deletes an object whose owners no longer exist. If one of several owners
// remains, it removes only the references to the others.
func (c *Controller) collectDependent(ctx context.Context, n node) error {
	if len(n.OwnerReferences) == 0 {
		return nil
	}
	owners, err := c.classify(ctx, n)
	if err != nil {
		return err
	}
	switch {
	case len(owners.existing) > 0:
		if len(owners.missing)+len(owners.deleting) == 0 {
			return nil
		}
		return c.patchOwners(ctx, n, owners.existing)
	case len(owners.deleting) > 0 && len(c.dependents(n)) > 0:
		if err := c.breakCycle(ctx, n); err != nil {
			return err
		}
		return c.delete(ctx, n, metav1.DeletePropagationForeground)
	case n.hasFinalizer(metav1.FinalizerOrphanDependents):
		return c.delete(ctx, n, metav1.DeletePropagationOrphan)
	case n.hasFinalizer(metav1.FinalizerDeleteDependents):
		return c.delete(ctx, n, metav1.DeletePropagationForeground)
	}
	return c.delete(ctx, n, metav1.DeletePropagationBackground)
}

func (c *Controller) classify(ctx context.Context, n node) (ownership, error) {
	var owners ownership
	for _, ref := range n.OwnerReferences {
		owner, served := c.owner(n, ref)
		switch {
		case !served:
			owners.existing = append(owners.existing, ref)
		case owner.PartialObjectMetadata != nil && owner.waitsForDependents():
			owners.deleting = append(owners.deleting, ref)
		case owner.PartialObjectMetadata != nil:
			owners.existing = append(owners.existing, ref)
		default:
			gone, err := c.confirmMissing(ctx, n, ref)
			if err != nil {
				return ownership{}, err
			}
			if gone {
				owners.missing = append(owners.missing, ref)
			} else {
				owners.existing = append(owners.existing, ref)
			}
		}
	}
	return owners, nil
}

// owner returns the object of a reference. served is false for kinds that this server does not
// serve; a served kind whose object is not in the cache returns an empty node.
func (c *Controller) owner(n node, ref metav1.OwnerReference) (owner node, served bool) {
	kind, ok := c.kindOf(ref)
	if !ok {
		return node{}, false
	}
	namespace := n.Namespace
	if kind.ClusterScoped {
		namespace = ""
	}
	result, ok := c.find(item{resource: kind.Resource, namespace: namespace, name: ref.Name})
	if !ok || result.UID != ref.UID {
		return node{}, true
	}
	return result, true
}

func (c *Controller) kindOf(ref metav1.OwnerReference) (Kind, bool) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return Kind{}, false
	}
	kind, ok := c.kinds[schema.GroupKind{Group: gv.Group, Kind: ref.Kind}]
	return kind, ok && kind.Resource.Version == gv.Version
}

// confirmMissing queries the API before anything is deleted, because the cache may lag and lack a new
// owner.
func (c *Controller) confirmMissing(ctx context.Context, n node, ref metav1.OwnerReference) (bool, error) {
	kind, _ := c.kindOf(ref)
	namespace := n.Namespace
	if kind.ClusterScoped {
		namespace = ""
	}
	owner, err := c.resource(kind.Resource, namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading owner %s %s: %w", ref.Kind, ref.Name, err)
	}
	return owner.UID != ref.UID, nil
}

// awaitDependents deletes the dependents of an object in foreground deletion. It removes the
// object's finalizer when no blocking dependent is left.
func (c *Controller) awaitDependents(ctx context.Context, n node) error {
	if !n.waitsForDependents() {
		return nil
	}
	blocked := false
	for _, dependent := range c.dependents(n) {
		blocked = blocked || c.blocks(dependent, n)
		if dependent.DeletionTimestamp == nil {
			c.queue.Add(dependent.item())
		}
	}
	if blocked {
		return nil // the deletion of the last dependent queues the owner again
	}
	left, err := c.deleteUnlinked(ctx, n)
	if err != nil {
		return err
	}
	if left {
		// These have no reference to the owner, so their deletion does not queue it.
		c.queue.AddAfter(n.item(), unlinkedPoll)
		return nil
	}
	return c.removeFinalizer(ctx, n, metav1.FinalizerDeleteDependents)
}

// unlinkedPoll is the interval between two checks for dependents by field.
const unlinkedPoll = 200 * time.Millisecond

// deleteUnlinked deletes the objects that name the owner in a field and have no reference to it
// yet, or are not in the caches yet. It reports whether any exist. It queries the API, because
// nothing would later delete an object that was missed here.
func (c *Controller) deleteUnlinked(ctx context.Context, owner node) (left bool, err error) {
	for _, kind := range c.kinds {
		if kind.OwnerField == "" ||
			c.kinds[schema.GroupKind{Group: kind.Resource.Group, Kind: kind.Owner}].Resource != owner.resource {
			continue
		}
		list, err := c.resource(kind.Resource, owner.Namespace).List(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector(kind.OwnerField, owner.Name).String(),
		})
		if err != nil {
			return false, fmt.Errorf("listing %s of %s %s/%s: %w", kind.Resource.Resource, owner.resource.Resource,
				owner.Namespace, owner.Name, err)
		}
		for i := range list.Items {
			dependent := node{&list.Items[i], kind.Resource}
			if dependent.belongsToAnother(kind.Owner, owner.UID) {
				continue
			}
			left = true
			if dependent.DeletionTimestamp != nil {
				continue
			}
			if err := c.delete(ctx, dependent, metav1.DeletePropagationForeground); err != nil {
				return true, err
			}
		}
	}
	return left, nil
}

// orphanDependents removes the references to an object that is deleted without its dependents.
func (c *Controller) orphanDependents(ctx context.Context, n node) error {
	if !n.hasFinalizer(metav1.FinalizerOrphanDependents) {
		return nil
	}
	for _, dependent := range c.dependents(n) {
		kept := slices.DeleteFunc(slices.Clone(dependent.OwnerReferences), func(ref metav1.OwnerReference) bool {
			return ref.UID == n.UID
		})
		if err := c.patchOwners(ctx, dependent, kept); err != nil {
			return err
		}
	}
	return c.removeFinalizer(ctx, n, metav1.FinalizerOrphanDependents)
}

// breakCycle prevents a deadlock of objects that own each other: an object that is about to wait
// stops blocking owners that already wait.
func (c *Controller) breakCycle(ctx context.Context, n node) error {
	for _, dependent := range c.dependents(n) {
		if !dependent.waitsForDependents() {
			continue
		}
		refs := slices.Clone(n.OwnerReferences)
		for i := range refs {
			no := false
			refs[i].BlockOwnerDeletion = &no
		}
		return c.patchOwners(ctx, n, refs)
	}
	return nil
}

func (c *Controller) resource(gvr schema.GroupVersionResource, namespace string) metadata.ResourceInterface {
	if namespace == "" {
		return c.client.Resource(gvr)
	}
	return c.client.Resource(gvr).Namespace(namespace)
}

func (c *Controller) delete(ctx context.Context, n node, policy metav1.DeletionPropagation) error {
	err := c.resource(n.resource, n.Namespace).Delete(ctx, n.Name, metav1.DeleteOptions{
		PropagationPolicy: &policy,
		Preconditions:     &metav1.Preconditions{UID: &n.UID},
	})
	return ignoreNotFound(err, "deleting", n)
}

// deleteNow ends a grace period by deleting the object.
func (c *Controller) deleteNow(ctx context.Context, n node) error {
	zero := int64(0)
	err := c.resource(n.resource, n.Namespace).Delete(ctx, n.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &zero,
		Preconditions:      &metav1.Preconditions{UID: &n.UID},
	})
	return ignoreNotFound(err, "ending the grace period of", n)
}

func (c *Controller) removeFinalizer(ctx context.Context, n node, finalizer string) error {
	kept := slices.DeleteFunc(slices.Clone(n.Finalizers), func(f string) bool { return f == finalizer })
	return c.patch(ctx, n, "finalizers", kept)
}

func (c *Controller) patchOwners(ctx context.Context, n node, refs []metav1.OwnerReference) error {
	return c.patch(ctx, n, "ownerReferences", refs)
}

// patch sets one list of the metadata of the version that the caller has read.
func (c *Controller) patch(ctx context.Context, n node, name string, value any) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":             n.UID,
		"resourceVersion": n.ResourceVersion,
		name:              value,
	}})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	_, err = c.resource(n.resource, n.Namespace).Patch(ctx, n.Name, types.MergePatchType, body, metav1.PatchOptions{})
	return ignoreNotFound(err, "patching", n)
}

// ignoreNotFound returns nil if the object no longer exists, otherwise err with its context.
func ignoreNotFound(err error, doing string, n node) error {
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("%s %s %s/%s: %w", doing, n.resource.Resource, n.Namespace, n.Name, err)
}
