package registryapi

// Endpoints lists every endpoint as method and pattern.
func Endpoints() []string {
	var endpoints []string
	for _, r := range routes {
		endpoints = append(endpoints, r.Method+" "+r.Pattern)
	}
	return endpoints
}
