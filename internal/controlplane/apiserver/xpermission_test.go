package apiserver

import "testing"

func TestPermissionOf(t *testing.T) {
	t.Parallel()
	const ns = apiPrefix + "namespaces/{namespace}/"
	tests := map[string]struct{ path, method, want string }{
		"list":            {ns + "apikeys", "GET", "cloud.apikeys.list"},
		"list everywhere": {apiPrefix + "apikeys", "GET", "cloud.apikeys.list"},
		"watch":           {apiPrefix + "watch/namespaces/{namespace}/apikeys/{name}", "GET", "cloud.apikeys.list"},
		"get":             {ns + "apikeys/{name}", "GET", "cloud.apikeys.describe"},
		"create":          {ns + "apikeys", "POST", "cloud.apikeys.create"},
		"replace":         {ns + "apikeys/{name}", "PUT", "cloud.apikeys.update"},
		"replace by post": {ns + "apikeys/{name}", "POST", "cloud.apikeys.update"},
		"patch":           {ns + "apikeys/{name}", "PATCH", "cloud.apikeys.update"},
		"delete":          {ns + "apikeys/{name}", "DELETE", "cloud.apikeys.delete"},
		"delete many":     {ns + "apikeys", "DELETE", "cloud.apikeys.delete"},
		"status":          {ns + "apikeys/{name}/status", "GET", "cloud.apikeys.describe"},
		"write status":    {ns + "apikeys/{name}/status", "PATCH", "cloud.apikeys.manage"},
		"a role":          {apiPrefix + "clusterroles/{name}", "GET", "cloud.clusterroles.describe"},
		"no one's":        {apiPrefix + "clusterroles/{name}", "DELETE", ""},
		"elsewhere":       {"/apis/authorization.vendor.io/v1alpha1/selfsubjectrulesreviews", "POST", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := permissionOf(tc.path, tc.method)
			if !ok {
				got = ""
			}
			if string(got) != tc.want {
				t.Errorf("%s %s: got %q, want %q", tc.method, tc.path, got, tc.want)
			}
		})
	}
}
