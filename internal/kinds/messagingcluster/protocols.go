package messagingcluster

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"freshet/api/v1alpha1"
)

// Bounds of the settings of protocols, as JSON.
const (
	maxProtocolSettings = 16 << 10 // bytes of one protocol
	maxProtocolDepth    = 16       // objects and lists within each other
	maxAllSettings      = 64 << 10 // bytes of all protocols
)

// validateProtocols bounds settings, and otherwise leaves them alone: what they
// mean is for the engine that has the protocol.
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
			errs = append(errs, field.Invalid(at, field.OmitValueType{}, "must be an object of settings, {} for none; null switches the protocol off"))
		case len(raw) > maxProtocolSettings:
			errs = append(errs, field.TooLong(at, "", maxProtocolSettings))
		case depth(raw) > maxProtocolDepth:
			errs = append(errs, field.Invalid(at, field.OmitValueType{}, fmt.Sprintf("must not be nested deeper than %d levels", maxProtocolDepth)))
		}
	}
	if total > maxAllSettings && len(errs) == 0 {
		errs = append(errs, field.TooLong(p, "", maxAllSettings))
	}
	return errs
}

// depth is how many objects and lists are open at once in JSON.
func depth(raw []byte) int {
	open, deepest, quoted := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			open++
			deepest = max(deepest, open)
		case c == '}' || c == ']':
			open--
		}
	}
	return deepest
}
