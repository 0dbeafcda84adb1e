package apiserver

import (
	"maps"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/openapi"
	"freshet/internal/controlplane/store"
)

const (
	apiTitle       = "Freshet resource API"
	replaceSummary = "replace the specified object (the same as PUT; any content type is accepted)"
)

// describe configures the OpenAPI documents, from which server-side apply also builds its types.
func describe(config *genericapiserver.Config, scheme *runtime.Scheme, kinds []store.Definition, version string) {
	namer := apiopenapi.NewDefinitionNamer(versioned(scheme))
	definitions := definitionsOf(kinds)

	v2 := genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	v2.Info.Title = apiTitle
	v2.Info.Version = version
	v2.PostProcessSpec = addReplaceByPostV2
	config.OpenAPIConfig = v2

	v3 := genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	v3.Info.Title = apiTitle
	v3.Info.Version = version
	v3.PostProcessSpec = addReplaceByPostV3
	config.OpenAPIV3Config = v3
}

// definitionsOf returns the definitions of our types and of the few Kubernetes types that are served.
func definitionsOf(kinds []store.Definition) common.GetOpenAPIDefinitions {
	return func(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		all := openapi.GetOpenAPIDefinitions(ref)
		maps.Copy(all, openapi.Core(ref))
		for _, kind := range kinds {
			for _, subresource := range kind.Subresources() {
				maps.Copy(all, subresource.Definitions(ref))
			}
		}
		freeForm(all, v1alpha1.ProtocolSettings{}.OpenAPIModelName())
		return all
	}
}

// freeForm declares that objects of a type may have arbitrary fields, which the generator cannot
// express.
func freeForm(all map[string]common.OpenAPIDefinition, name string) {
	definition := all[name]
	definition.Schema.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	all[name] = definition
}

// versioned removes the internal versions of our types. They are the same Go types and would appear
// in addition to the public versions.
func versioned(scheme *runtime.Scheme) *runtime.Scheme {
	public := runtime.NewScheme()
	for kind, goType := range scheme.AllKnownTypes() {
		if object, ok := reflect.New(goType).Interface().(runtime.Object); ok &&
			kind.Version != runtime.APIVersionInternal {
			public.AddKnownTypeWithName(kind, object)
		}
	}
	return public
}

// addReplaceByPostV2 documents the route that replaceByPost serves.
func addReplaceByPostV2(doc *spec.Swagger) (*spec.Swagger, error) {
	for path, item := range doc.Paths.Paths {
		if !isItem(path) || item.Put == nil || item.Post != nil {
			continue
		}
		post := *item.Put
		post.ID = strings.Replace(post.ID, "replace", "replaceByPost", 1)
		post.Description = replaceSummary
		item.Post = &post
		doc.Paths.Paths[path] = item
	}
	addPermissionsV2(doc)
	return doc, nil
}

func addReplaceByPostV3(doc *spec3.OpenAPI) (*spec3.OpenAPI, error) {
	if doc.Paths == nil {
		return doc, nil
	}
	for path, item := range doc.Paths.Paths {
		if !isItem(path) || item.Put == nil || item.Post != nil {
			continue
		}
		post := *item.Put
		post.OperationId = strings.Replace(post.OperationId, "replace", "replaceByPost", 1)
		post.Description = replaceSummary
		item.Post = &post
	}
	addPermissionsV3(doc)
	return doc, nil
}
