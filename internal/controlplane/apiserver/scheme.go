package apiserver

import (
	"fmt"

	metav1internal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/runtime/serializer/recognizer"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/store"
)

// newScheme registers the kinds with their defaults, field selectors and subresources.
func newScheme(definitions []store.Definition) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	unversioned := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, unversioned)
	scheme.AddUnversionedTypes(unversioned,
		&metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	for _, add := range []func(*runtime.Scheme) error{
		v1alpha1.AddToScheme, v1alpha1.AddInternalToScheme, metav1internal.AddToScheme, addReviews, addCore,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	for _, kind := range definitions {
		if err := kind.AddToScheme(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	return scheme, scheme.SetVersionPriority(v1alpha1.SchemeGroupVersion)
}

// storageCodec stores protobuf and reads every supported format.
func storageCodec(scheme *runtime.Scheme, codecs serializer.CodecFactory, version schema.GroupVersion) runtime.Codec {
	encoder := protobuf.NewSerializer(scheme, scheme)
	decoder := recognizer.NewDecoder(encoder, codecs.UniversalDeserializer())
	return codecs.CodecForVersions(encoder, decoder, version, internalVersion(version.Group))
}
