package store

import metav1internal "k8s.io/apimachinery/pkg/apis/meta/internalversion"

// withNewestVersion makes the limit effective for lists with resourceVersion 0
// (docs/spec/resources.md#list-parameters). For version 0 the API machinery returns all objects
// from its cache. The caller accepts any version, so the newest is read instead.
func withNewestVersion(options *metav1internal.ListOptions) *metav1internal.ListOptions {
	if options == nil || options.Limit == 0 || options.ResourceVersion != "0" {
		return options
	}
	newest := options.DeepCopy()
	newest.ResourceVersion, newest.ResourceVersionMatch = "", ""
	return newest
}
