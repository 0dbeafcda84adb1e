package resources

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"freshet.dev/client"
)

// Kinds returns the kinds that the server serves.
func (c *Client) Kinds(ctx context.Context) ([]Kind, error) {
	var kinds []Kind
	for _, path := range []string{"/apis", "/api"} {
		response, err := c.do(ctx, &client.Request{
			Method: http.MethodGet, Path: path,
			Header: http.Header{"Accept": {"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}},
		})
		if err != nil {
			return nil, err
		}
		var groups discovered
		if err := response.JSON(&groups); err != nil {
			return nil, err
		}
		kinds = append(kinds, groups.kinds()...)
	}
	return kinds, nil
}

// discovered is the part of the discovery response that Kinds needs.
type discovered struct {
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Versions []struct {
			Version   string `json:"version"`
			Resources []struct {
				Resource     string `json:"resource"`
				ResponseKind struct {
					Kind string `json:"kind"`
				} `json:"responseKind"`
				Scope      string   `json:"scope"`
				Singular   string   `json:"singularResource"`
				Verbs      []string `json:"verbs"`
				ShortNames []string `json:"shortNames"`
				Categories []string `json:"categories"`
			} `json:"resources"`
		} `json:"versions"`
	} `json:"items"`
}

func (d *discovered) kinds() []Kind {
	var kinds []Kind
	for _, group := range d.Items {
		for _, version := range group.Versions {
			for _, r := range version.Resources {
				kinds = append(kinds, Kind{
					Group: group.Metadata.Name, Version: version.Version, Resource: r.Resource,
					Kind:       r.ResponseKind.Kind,
					Namespaced: r.Scope == "Namespaced", Singular: r.Singular, ShortNames: r.ShortNames,
					Categories: r.Categories, Verbs: r.Verbs,
				})
			}
		}
	}
	return kinds
}

// Find returns the kinds that match a word: a resource, a kind, a short name or a category,
// optionally with a dot and an API group. Kinds of Freshet have precedence over others, and
// names over categories.
func Find(kinds []Kind, word string) []Kind {
	word, group, _ := strings.Cut(strings.ToLower(word), ".")
	var found, category []Kind
	for _, k := range kinds {
		if group != "" && group != k.Group && group != k.Version+"."+k.Group {
			continue
		}
		switch {
		case word == k.Resource, word == k.Singular, word == strings.ToLower(k.Kind),
			slices.Contains(k.ShortNames, word):
			if k.Group == Group || group != "" {
				return []Kind{k}
			}
			found = append(found, k)
		case slices.Contains(k.Categories, word):
			category = append(category, k)
		}
	}
	if len(found) > 0 {
		return found[:1]
	}
	return category
}

// Of returns the kind of an object.
func Of(kinds []Kind, o Object) (Kind, bool) {
	for _, k := range kinds {
		if k.Kind == o.Kind() && k.APIVersion() == o.APIVersion() {
			return k, true
		}
	}
	return Kind{}, false
}
