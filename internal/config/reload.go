package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// reloadable are the settings that a running server can change. Reload adds quotas except
// for quotas.resources.
var reloadable = map[string]bool{
	"log.level": true, "log.access": true, "log.accessRate": true, "metrics.topics": true,
}

// Reload returns a copy of c with those settings of next that a running server can change.
// changed lists their paths; restart lists the changed settings that need a restart.
func (c *Config) Reload(next *Config) (now *Config, changed, restart []string) {
	copied := *c
	copied.Log.Level, copied.Log.Access, copied.Log.AccessRate = next.Log.Level, next.Log.Access, next.Log.AccessRate
	copied.Metrics.Topics = next.Metrics.Topics
	copied.Quotas = next.Quotas
	copied.Quotas.Resources = c.Quotas.Resources
	before, after := map[string]any{}, map[string]any{}
	flatten(before, "", jsonTree(c))
	flatten(after, "", jsonTree(next))
	maps.Copy(before, missingKeys(after, before))
	for _, path := range slices.Sorted(maps.Keys(before)) {
		switch {
		case reflect.DeepEqual(before[path], after[path]):
		case reloadable[path] || strings.HasPrefix(path, "quotas.") && !strings.HasPrefix(path, "quotas.resources."):
			changed = append(changed, path)
		default:
			restart = append(restart, path)
		}
	}
	return &copied, changed, restart
}

// missingKeys returns the keys of a that are not in b, with nil values.
func missingKeys(a, b map[string]any) map[string]any {
	out := map[string]any{}
	for key := range a {
		if _, ok := b[key]; !ok {
			out[key] = nil
		}
	}
	return out
}

// jsonTree returns the configuration as generic JSON values.
func jsonTree(c *Config) any {
	text, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("config: %v", err)) // Config contains only types that can be encoded
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		panic(fmt.Sprintf("config: %v", err)) // json.Marshal returned valid JSON
	}
	return out
}

// flatten stores every value under its path; a list is one value.
func flatten(into map[string]any, path string, value any) {
	fields, ok := value.(map[string]any)
	if !ok {
		into[path] = value
		return
	}
	for name, inner := range fields {
		if path != "" {
			name = path + "." + name
		}
		flatten(into, name, inner)
	}
}
