package resources

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"freshet/internal/resources/registry"
)

// inside wraps the API itself: what stands here is behind authentication, so
// that strangers cannot make us read bodies.
func inside(codecs serializer.CodecFactory, limit int64, api http.Handler) http.Handler {
	patches := checkPatches(codecs, limit, api)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPatch:
			patches.ServeHTTP(w, r)
		case r.Method == http.MethodDelete && r.URL.RawQuery != "":
			api.ServeHTTP(w, r.WithContext(registry.WithDeleteQuery(r.Context(), r.URL.Query())))
		default:
			api.ServeHTTP(w, r)
		}
	})
}

// checkPatches refuses strategic merge patches with a directive that does not
// exist, naming it (R11): the machinery passes over some of them.
func checkPatches(codecs serializer.CodecFactory, limit int64, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || mediaType != string(types.StrategicMergePatchType) || r.Body == nil {
			next.ServeHTTP(w, r)
			return
		}
		head, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
		if err == nil && int64(len(head)) <= limit {
			if err := checkDirectives(head); err != nil {
				writeStatus(codecs, w, r, err)
				return
			}
		}
		// What cannot be read, or is too long, is told by the machinery.
		r.Body = readCloser{io.MultiReader(bytes.NewReader(head), r.Body), r.Body}
		next.ServeHTTP(w, r)
	})
}

const directive = "$patch"

func checkDirectives(patch []byte) error {
	if !bytes.Contains(patch, []byte("patch")) { // the dollar sign may be escaped
		return nil
	}
	var value any
	if json.Unmarshal(patch, &value) != nil {
		return nil //nolint:nilerr // malformed bodies are told by the machinery
	}
	if err := findUnknown(value, nil); err != nil {
		return apierrors.NewBadRequest("the patch is invalid: " + err.Error())
	}
	return nil
}

// findUnknown walks a patch in a steady order and returns its first unknown
// directive.
func findUnknown(value any, path *field.Path) *field.Error {
	switch v := value.(type) {
	case []any:
		for i, item := range v {
			if err := findUnknown(item, path.Index(i)); err != nil {
				return err
			}
		}
	case map[string]any:
		known := []string{"delete", "merge", "replace"}
		if found, ok := v[directive]; ok && !isOneOf(found, known) {
			return field.NotSupported(path.Child(directive), fmt.Sprint(found), known)
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if err := findUnknown(v[name], path.Child(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func isOneOf(value any, known []string) bool {
	text, ok := value.(string)
	return ok && slices.Contains(known, text)
}
