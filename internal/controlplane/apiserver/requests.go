package apiserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"

	"freshet/api/v1alpha1"
	"freshet/internal/base/web"
	"freshet/internal/controlplane/jsonshape"
	"freshet/internal/controlplane/quantities"
	"freshet/internal/controlplane/store"
)

// checkRequests wraps the API itself. It runs after authentication, so that unauthenticated clients
// cannot make the server read bodies.
func checkRequests(scheme *runtime.Scheme, codecs serializer.CodecFactory, kinds kinds, limit int64,
	api http.Handler,
) http.Handler {
	api = serveDocuments(codecs, api)
	patches := checkPatches(scheme, codecs, kinds, limit, api)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = strictFields(kinds, r)
		if err := checkBooleans(r); err != nil {
			writeStatus(codecs, w, r, err)
			return
		}
		switch {
		case r.Method == http.MethodPatch:
			patches.ServeHTTP(w, r)
		case r.Method == http.MethodDelete && r.URL.RawQuery != "":
			api.ServeHTTP(w, r.WithContext(store.WithDeleteQuery(r.Context(), r.URL.Query())))
		default:
			api.ServeHTTP(w, r)
		}
	})
}

// booleanParameters are the boolean query parameters.
var booleanParameters = []string{
	"watch", "allowWatchBookmarks", "sendInitialEvents", "force",
	"orphanDependents", "pretty",
}

// checkBooleans rejects other values of these parameters, most of which the API machinery would
// treat as true. A parameter without a value is true.
func checkBooleans(r *http.Request) *apierrors.StatusError {
	if r.URL.RawQuery == "" {
		return nil
	}
	query := r.URL.Query()
	for _, name := range booleanParameters {
		for _, value := range query[name] {
			if _, err := strconv.ParseBool(strings.ToLower(value)); err != nil && value != "" {
				return apierrors.NewBadRequest(fmt.Sprintf("query parameter %s: %q is not a boolean; use true or false",
					name, value))
			}
		}
	}
	return nil
}

// strictFields rejects unknown fields of strict kinds, whatever fieldValidation the caller sets.
// For other kinds an unknown field is ignored with a warning; in a role binding it may be a
// restriction, and ignoring it would grant more than intended.
func strictFields(kinds kinds, r *http.Request) *http.Request {
	info, ok := request.RequestInfoFrom(r.Context())
	if !ok || !kinds.info(info.Resource).Strict ||
		(r.Method != http.MethodPost && r.Method != http.MethodPut && r.Method != http.MethodPatch) {
		return r
	}
	strict := r.Clone(r.Context())
	query := strict.URL.Query()
	query.Set("fieldValidation", metav1.FieldValidationStrict)
	strict.URL.RawQuery = query.Encode()
	return strict
}

// checkPatches rejects patches that the API machinery would ignore or process slowly: strategic
// merge patches with an unknown directive (docs/spec/resources.md#r11), and oversized quantities in
// patches that no serializer decodes.
func checkPatches(scheme *runtime.Scheme, codecs serializer.CodecFactory, kinds kinds, limit int64,
	next http.Handler,
) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		check, ok := patchChecks[types.PatchType(mediaType)]
		if err != nil || !ok || r.Body == nil {
			next.ServeHTTP(w, r)
			return
		}
		head, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
		if err == nil && int64(len(head)) <= limit {
			if err := check(head, kinds.empty(scheme, r)); err != nil {
				writeStatus(codecs, w, r, badPatch(kinds, r, err))
				return
			}
			if types.PatchType(mediaType) == types.ApplyYAMLPatchType {
				head = canonicalApply(head, kinds.empty(scheme, r),
					func(patch map[string]any) bool { return kinds.rewriteApply(r, patch) })
			}
		}
		// The API machinery reports a body that cannot be read or is too long.
		r.Body = readCloser{io.MultiReader(bytes.NewReader(head), r.Body), r.Body}
		next.ServeHTTP(w, r)
	})
}

// badPatch returns 422 for values of a wrong type, as the API machinery does for other patches, and
// 400 for a body that is not a patch.
func badPatch(kinds kinds, r *http.Request, err error) error {
	text := web.DecodeText(err.Error())
	info, known := request.RequestInfoFrom(r.Context())
	if !errors.Is(err, errShape) || !known {
		return apierrors.NewBadRequest("patch is invalid: " + text)
	}
	kind := v1alpha1.SchemeGroupVersion.WithKind(kinds.info(info.Resource).Kind).GroupKind()
	return apierrors.NewInvalid(kind, info.Name,
		field.ErrorList{field.Invalid(field.NewPath("patch"), field.OmitValueType{}, text)})
}

// patchChecks contains the checks of a patch before it is applied to an object of the kind.
var patchChecks = map[types.PatchType]func(patch []byte, empty runtime.Object) error{
	types.ApplyYAMLPatchType:      func(patch []byte, _ runtime.Object) error { return quantities.CheckYAML(patch) },
	types.JSONPatchType:           func(patch []byte, _ runtime.Object) error { return checkDepth(patch) },
	types.MergePatchType:          func(patch []byte, _ runtime.Object) error { return checkDepth(patch) },
	types.StrategicMergePatchType: checkStrategic,
}

func checkStrategic(patch []byte, empty runtime.Object) error {
	if err := errors.Join(checkDepth(patch), quantities.CheckJSON(patch), checkDirectives(patch)); err != nil {
		return err
	}
	return checkShape(patch, empty)
}

// maxNesting is much more than any of our kinds needs. The cost of merging grows with its square: a
// few kilobytes of brackets would keep a core busy for seconds.
const maxNesting = 100

var errNesting = fmt.Errorf("nested deeper than %d levels", maxNesting)

// checkDepth rejects JSON with more than maxNesting open brackets.
func checkDepth(patch []byte) error {
	if jsonshape.Depth(patch) > maxNesting {
		return errNesting
	}
	return nil
}

const patchDirective = "$patch"

func checkDirectives(patch []byte) error {
	if !bytes.Contains(patch, []byte("patch")) { // the dollar sign may be escaped
		return nil
	}
	var value any
	if json.Unmarshal(patch, &value) != nil {
		return nil //nolint:nilerr // the API machinery reports malformed bodies
	}
	if err := findUnknown(value, nil); err != nil {
		return err
	}
	return nil
}

// findUnknown walks a patch in a deterministic order and returns its first unknown directive.
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
		if found, ok := v[patchDirective]; ok && !isOneOf(found, known) {
			return field.NotSupported(path.Child(patchDirective), fmt.Sprint(found), known)
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
