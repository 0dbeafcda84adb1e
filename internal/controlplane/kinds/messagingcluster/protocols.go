package messagingcluster

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/jsonshape"
)

// Limits of the settings of protocols, as JSON.
const (
	maxProtocolSettings = 16 << 10 // bytes of one protocol
	maxProtocolDepth    = 16       // nesting of objects and lists
	maxAllSettings      = 64 << 10 // bytes of all protocols
)

// validateProtocols checks only the size and nesting of the settings; the engine that implements a
// protocol interprets them.
func validateProtocols(p *field.Path, protocols map[string]v1alpha1.ProtocolSettings) field.ErrorList {
	if n := len(protocols); n > maxEntries {
		return field.ErrorList{field.TooMany(p, n, maxEntries)}
	}
	var errs field.ErrorList
	total := 0
	for _, name := range slices.Sorted(maps.Keys(protocols)) {
		raw, at := protocols[name].Raw, p.Key(name)
		total += len(raw)
		switch {
		case len(raw) > 0 && raw[0] != '{':
			errs = append(errs, field.Invalid(at, field.OmitValueType{},
				"must be an object of settings, {} for none; null disables the protocol"))
		case len(raw) > maxProtocolSettings:
			errs = append(errs, field.TooLong(at, "", maxProtocolSettings))
		case jsonshape.Depth(raw) > maxProtocolDepth:
			errs = append(errs, field.Invalid(at, field.OmitValueType{},
				fmt.Sprintf("must not be nested deeper than %d levels", maxProtocolDepth)))
		}
	}
	if total > maxAllSettings && len(errs) == 0 {
		errs = append(errs, field.TooLong(p, "", maxAllSettings))
	}
	return errs
}

// RewriteApply implements store.ApplyRewriter. It removes protocols that are null in the body and
// disabled already, because a field that does not exist needs no manager. A null that disables a
// protocol stays, because another manager may own it.
func (*Kind) RewriteApply(body map[string]any, stored func() *object) bool {
	spec, _ := body["spec"].(map[string]any)
	config, _ := spec["config"].(map[string]any)
	protocols, _ := config["protocols"].(map[string]any)
	var enabled map[string]v1alpha1.ProtocolSettings
	checked, changed := false, false
	for name, settings := range protocols {
		if settings != nil {
			continue
		}
		if !checked {
			checked = true
			if cluster := stored(); cluster != nil && cluster.Spec.Config != nil {
				enabled = cluster.Spec.Config.Protocols
			}
		}
		if _, isOn := enabled[name]; !isOn {
			delete(protocols, name)
			changed = true
		}
	}
	return changed
}

// disownDisabledProtocols removes disabled protocols from the managed fields of an apply. A field that
// does not exist must have no manager, otherwise the next manager that disables the protocol would
// get a conflict.
func disownDisabledProtocols(o *object) {
	for i := range o.ManagedFields {
		entry := &o.ManagedFields[i]
		if entry.FieldsV1 == nil || entry.Operation != metav1.ManagedFieldsOperationApply {
			continue
		}
		owned := &fieldpath.Set{}
		if owned.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())) != nil {
			continue // written by the API machinery itself
		}
		off := fieldpath.NewSet()
		owned.Iterate(func(path fieldpath.Path) {
			if name, ok := protocolOf(path); ok && !isEnabled(o, name) {
				off.Insert(slices.Clone(path))
			}
		})
		if off.Empty() {
			continue
		}
		if text, err := owned.Difference(off).ToJSON(); err == nil {
			entry.FieldsV1 = metav1.NewFieldsV1(string(text))
		}
	}
}

var protocolsPath = []string{"spec", "config", "protocols"}

// protocolOf returns the protocol to which a field belongs.
func protocolOf(path fieldpath.Path) (name string, ok bool) {
	if len(path) <= len(protocolsPath) {
		return "", false
	}
	for i, part := range protocolsPath {
		if path[i].FieldName == nil || *path[i].FieldName != part {
			return "", false
		}
	}
	last := path[len(protocolsPath)].FieldName
	if last == nil {
		return "", false
	}
	return *last, true
}

func isEnabled(o *object, protocol string) bool {
	if o.Spec.Config == nil {
		return false
	}
	_, on := o.Spec.Config.Protocols[protocol]
	return on
}
