package registryapi

import (
	"net/http"

	"freshet/internal/base/web"
)

// endpoint is the handler of a route.
type endpoint struct {
	serve      func(*call) error
	authorize  func(*call) error // nil: serve authorizes the call, or it needs no permission
	noTimeout  bool              // no timeout: served from memory, or depends on the size of a file
	exportFile bool              // the request or response is the file of an export
	public     bool              // needs no token and no registry
}

// routes are all endpoints.
var routes = []web.Route[endpoint]{
	{Method: http.MethodGet, Pattern: "/schemas/types", Value: endpoint{serve: (*call).getTypes, noTimeout: true}},
	{
		Method: http.MethodGet, Pattern: "/schemas/ids/{id}",
		Value: endpoint{serve: (*call).getSchema, noTimeout: true},
	},
	{
		Method: http.MethodGet, Pattern: "/schemas/ids/{id}/schema",
		Value: endpoint{serve: (*call).getSchemaText, noTimeout: true},
	},
	{
		Method: http.MethodGet, Pattern: "/schemas/ids/{id}/versions",
		Value: endpoint{serve: (*call).getSchemaVersions},
	},
	{
		Method: http.MethodGet, Pattern: "/schemas/ids/{id}/subjects",
		Value: endpoint{serve: (*call).getSchemaSubjects},
	},

	{Method: http.MethodGet, Pattern: "/subjects", Value: endpoint{serve: (*call).getSubjects}},
	{
		Method: http.MethodPost, Pattern: "/subjects/{subject}",
		Value: endpoint{serve: (*call).lookUp, authorize: onSubject(describeSubject)},
	},
	{
		Method: http.MethodDelete, Pattern: "/subjects/{subject}",
		Value: endpoint{serve: (*call).deleteSubject, authorize: onSubject(deleteSubject)},
	},
	{
		Method: http.MethodGet, Pattern: "/subjects/{subject}/versions",
		Value: endpoint{serve: (*call).getVersions, authorize: onSubject(describeSubject)},
	},
	{
		Method: http.MethodPost, Pattern: "/subjects/{subject}/versions",
		Value: endpoint{serve: (*call).register, authorize: onSubject(createSubject)},
	},
	{
		Method: http.MethodGet, Pattern: "/subjects/{subject}/versions/{version}",
		Value: endpoint{serve: (*call).getVersion, authorize: onSubject(describeSubject)},
	},
	{
		Method: http.MethodDelete, Pattern: "/subjects/{subject}/versions/{version}",
		Value: endpoint{serve: (*call).deleteVersion, authorize: onSubject(deleteSubject)},
	},
	{
		Method: http.MethodGet, Pattern: "/subjects/{subject}/versions/{version}/schema",
		Value: endpoint{serve: (*call).getVersionText, authorize: onSubject(describeSubject)},
	},
	{
		Method: http.MethodGet, Pattern: "/subjects/{subject}/versions/{version}/referencedby",
		Value: endpoint{serve: (*call).getReferencedBy, authorize: onSubject(describeSubject)},
	},

	{
		Method: http.MethodPost, Pattern: "/compatibility/subjects/{subject}/versions",
		Value: endpoint{serve: (*call).checkSubject, authorize: onSubject(describeSubject)},
	},
	{
		Method: http.MethodPost, Pattern: "/compatibility/subjects/{subject}/versions/{version}",
		Value: endpoint{serve: (*call).checkVersion, authorize: onSubject(describeSubject)},
	},

	{Method: http.MethodGet, Pattern: "/config", Value: endpoint{serve: (*call).getGlobalConfig, noTimeout: true}},
	{
		Method: http.MethodGet, Pattern: "/config/{subject}",
		Value: endpoint{serve: (*call).getConfig, authorize: onSubject(describeSubject)},
	},
	{
		Method: http.MethodPut, Pattern: "/config/{subject}",
		Value: endpoint{serve: (*call).putConfig, authorize: onSubject(updateSubject)},
	},
	{Method: http.MethodGet, Pattern: "/mode", Value: endpoint{serve: (*call).getMode}},
	{
		Method: http.MethodPut, Pattern: "/mode",
		Value: endpoint{serve: (*call).putMode, authorize: (*call).authorizeMode},
	},

	{Method: http.MethodPost, Pattern: "/registry/v1alpha1/diff", Value: endpoint{serve: (*call).diff}},
	{
		Method: http.MethodGet, Pattern: "/registry/v1alpha1/openapi.yaml",
		Value: endpoint{serve: (*call).document, public: true},
	},
	{
		Method: http.MethodGet, Pattern: "/registry/v1alpha1/export",
		Value: endpoint{serve: (*call).export, authorize: (*call).authorizeExport, noTimeout: true, exportFile: true},
	},
	{
		Method: http.MethodPost, Pattern: "/registry/v1alpha1/import",
		Value: endpoint{
			serve: (*call).importFile, authorize: (*call).authorizeImport, noTimeout: true, exportFile: true,
		},
	},
}
