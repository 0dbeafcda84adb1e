package rolebinding

import "freshet/internal/controlplane/reconcile"

// Put implements store.Observer: it tells the policy what a binding is now.
func (k *Kind) Put(o *object) {
	if o.DeletionTimestamp != nil && (o.DeletionGracePeriodSeconds == nil || *o.DeletionGracePeriodSeconds == 0) {
		k.Remove(o)
		return
	}
	// A binding that does not compile grants nothing; the controller says so.
	_ = k.policy.SetBinding(convert(o))
}

// Remove implements store.Observer: it ends a binding that is gone.
func (k *Kind) Remove(o *object) {
	k.policy.DeleteBinding(o.Namespace, o.Name, reconcile.Revision(o))
}
