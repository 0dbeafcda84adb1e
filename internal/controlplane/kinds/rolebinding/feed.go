package rolebinding

import "freshet/internal/controlplane/reconcile"

// Put implements store.Observer. It updates the binding in the policy.
func (k *Kind) Put(o *object) {
	if reconcile.Ended(o) {
		k.Remove(o)
		return
	}
	// A binding that does not compile grants nothing; the controller writes the error to the
	// status.
	_ = k.policy.SetBinding(convert(o))
}

// Remove implements store.Observer. It removes a deleted binding from the policy.
func (k *Kind) Remove(o *object) { k.policy.DeleteBinding(o.Namespace, o.Name, reconcile.Revision(o)) }
