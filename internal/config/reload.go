package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// atRunTime are the settings that a running server takes up.
var atRunTime = map[string]bool{
	"log.level": true, "log.access": true, "log.accessRate": true, "metrics.topics": true,
}

// Reload lays those settings of next over c that a running server can take up.
// changed names them, restart those that differ too and need a restart.
func (c *Config) Reload(next *Config) (now *Config, changed, restart []string) {
	copied := *c
	copied.Log.Level, copied.Log.Access, copied.Log.AccessRate = next.Log.Level, next.Log.Access, next.Log.AccessRate
	copied.Metrics.Topics = next.Metrics.Topics
	copied.Quotas = next.Quotas
	copied.Quotas.Resources = c.Quotas.Resources
	before, after := map[string]any{}, map[string]any{}
	flatten(before, "", tree(c))
	flatten(after, "", tree(next))
	maps.Copy(before, missing(after, before))
	for _, path := range slices.Sorted(maps.Keys(before)) {
		switch {
		case reflect.DeepEqual(before[path], after[path]):
		case atRunTime[path] || strings.HasPrefix(path, "quotas.") && !strings.HasPrefix(path, "quotas.resources."):
			changed = append(changed, path)
		default:
			restart = append(restart, path)
		}
	}
	return &copied, changed, restart
}

// missing are the keys of a that b lacks, without values.
func missing(a, b map[string]any) map[string]any {
	out := map[string]any{}
	for key := range a {
		if _, ok := b[key]; !ok {
			out[key] = nil
		}
	}
	return out
}

// tree is the configuration as its file would show it.
func tree(c *Config) any {
	text, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("config: %v", err)) // strings, numbers and lists of them
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		panic(fmt.Sprintf("config: %v", err)) // it was written a moment ago
	}
	return out
}

// flatten names every value by its path; a list is one value.
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
