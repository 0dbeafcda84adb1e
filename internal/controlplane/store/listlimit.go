package store

import metav1internal "k8s.io/apimachinery/pkg/apis/meta/internalversion"

// limited makes a limit hold for lists of any version as well
// (docs/spec/resources.md#list-parameters): asked for version 0, the machinery
// answers from its cache with everything. The newest version is as good as any.
func limited(options *metav1internal.ListOptions) *metav1internal.ListOptions {
	if options == nil || options.Limit == 0 || options.ResourceVersion != "0" {
		return options
	}
	newest := options.DeepCopy()
	newest.ResourceVersion, newest.ResourceVersionMatch = "", ""
	return newest
}
