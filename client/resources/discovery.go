package resources

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"freshet/client"
)

// Kinds asks the server which kinds it serves.
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

// discovered is the server's answer, as far as it is needed.
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

// Find are the kinds that a word means: a resource, a kind, a short name, or a
// category; with a dot, of a group. The service's own come first, and a name wins
// over a category.
func Find(kinds []Kind, word string) []Kind {
	word, group, _ := strings.Cut(lower(word), ".")
	var found, category []Kind
	for _, k := range kinds {
		if group != "" && group != k.Group && group != k.Version+"."+k.Group {
			continue
		}
		switch {
		case word == k.Resource, word == k.Singular, word == lower(k.Kind), slices.Contains(k.ShortNames, word):
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

// Of is the kind of an object by what it says it is.
func Of(kinds []Kind, o Object) (Kind, bool) {
	for _, k := range kinds {
		if k.Kind == o.Kind() && k.APIVersion() == o.APIVersion() {
			return k, true
		}
	}
	return Kind{}, false
}
