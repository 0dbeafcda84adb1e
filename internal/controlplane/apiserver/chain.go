package apiserver

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"freshet/api/v1alpha1"
	"freshet/internal/base/web"
	"freshet/internal/ops/quota"
	"freshet/internal/surfaces/pipeline"
)

// buildChain wraps the API machinery's handler chain. These handlers must run before it, because
// the chain has already determined the verb and authorized it when its inner handlers run.
func buildChain(scheme *runtime.Scheme, codecs serializer.CodecFactory, kinds kinds, limits *inFlight,
	auditor pipeline.Auditor, quotas *quota.Organizations,
) func(http.Handler, *genericapiserver.Config) http.Handler {
	return func(api http.Handler, c *genericapiserver.Config) http.Handler {
		known := c.Authentication.Authenticator
		c.Authentication.Authenticator = authenticated
		chain := genericapiserver.DefaultBuildHandlerChain(checkRequests(scheme, codecs, kinds,
			c.MaxRequestBodyBytes, api), c)
		chain = authenticate(codecs, known, meter(codecs, quotas, limits.handle(chain)))
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			record := web.RecordOf(r.Context())
			record.SetRoute("resources", kinds.route(r.URL.Path))
			record.LogAtDebug = isPublic(r.URL.Path)
			record.IsClientError = isFutureVersion
			if auditor != nil {
				r = withAuditNotes(r)
				defer func() { writeAudit(c, kinds, r, record, auditor) }()
			}
			if err := validateRequest(r); err != nil {
				writeStatus(codecs, w, r, err)
				return
			}
			r = allowEmptyBody(kinds, redirectCorePath(kinds, replaceByPost(r)))
			chain.ServeHTTP(w, r)
		})
	}
}

// isFutureVersion reports whether a response says that the client's resourceVersion does not exist yet. The API
// machinery waits for it and then responds with the status of a timeout.
func isFutureVersion(status int, body []byte) bool {
	return status == http.StatusGatewayTimeout && bytes.Contains(body, []byte("Too large resource version"))
}

func writeStatus(codecs serializer.CodecFactory, w http.ResponseWriter, r *http.Request, err error) {
	web.RecordOf(r.Context()).Fail(err)
	responsewriters.ErrorNegotiated(err, codecs, v1alpha1.SchemeGroupVersion, w, r)
}

// validateRequest rejects requests that the API machinery would accept or answer with 500.
func validateRequest(r *http.Request) error {
	if rejection := web.Refused(r); rejection != nil {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: int32(rejection.Status), Reason: statusReason(rejection.Status),
			Message: rejection.Text,
		}}
	}
	for name := range r.Header {
		// Impersonation is never granted: the API machinery has several impersonation verbs, and no
		// caller gets one.
		if strings.HasPrefix(name, "Impersonate-") {
			return apierrors.NewForbidden(schema.GroupResource{}, "",
				fmt.Errorf("impersonation is not supported; remove the header %s", name))
		}
	}
	if r.URL.RawQuery == "" {
		return nil
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return apierrors.NewBadRequest("query string is malformed: " + err.Error())
	}
	if version := query.Get("resourceVersion"); version != "" {
		if _, err := strconv.ParseUint(version, 10, 63); err != nil {
			return apierrors.NewBadRequest(fmt.Sprintf(
				"resourceVersion %q is not a resource version that this server issued", version))
		}
	}
	if grace := query.Get("gracePeriodSeconds"); grace != "" {
		if _, err := strconv.ParseInt(grace, 10, 64); err != nil { // a negative one is rejected as invalid later
			return apierrors.NewBadRequest(fmt.Sprintf("gracePeriodSeconds must be a whole number, not %q", grace))
		}
	}
	for name, limit := range map[string]int64{"limit": math.MaxInt64, "timeoutSeconds": maxTimeout} {
		if text := query.Get(name); text != "" {
			if n, err := strconv.ParseInt(text, 10, 64); err != nil || n < 0 || n > limit {
				return apierrors.NewBadRequest(fmt.Sprintf("%s must be a whole number from 0 to %d, not %q",
					name, limit, text))
			}
		}
	}
	return validateFieldManager(query)
}

// maxTimeout is about 68 years; it prevents an overflow of the deadline.
const maxTimeout = math.MaxInt32

// validateFieldManager validates fieldManager for every call, including those for which the API
// machinery ignores it.
func validateFieldManager(query url.Values) error {
	manager, path := query.Get("fieldManager"), field.NewPath("fieldManager")
	errs := metav1validation.ValidateFieldManager(manager, path)
	if !utf8.ValidString(manager) {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, "must be text in UTF-8"))
	}
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "Options"}, "", errs)
}

// statusReason returns the API machinery's reason for a status code, if it has one.
func statusReason(status int) metav1.StatusReason {
	if status == http.StatusBadRequest {
		return metav1.StatusReasonBadRequest
	}
	return metav1.StatusReasonUnknown
}

const apiPrefix = "/apis/cloud.vendor.io/v1alpha1/"

// replaceByPost turns a POST on an item into the replace that the specification describes. Any
// content type is accepted: if it is not JSON, YAML or protobuf, the first bytes of the body
// determine the format (docs/spec/resources.md#r2).
func replaceByPost(r *http.Request) *http.Request {
	if r.Method != http.MethodPost || !isItem(r.URL.Path) {
		return r
	}
	put := r.Clone(r.Context())
	put.Method = http.MethodPut
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err == nil && (mediaType == runtime.ContentTypeJSON || mediaType == runtime.ContentTypeYAML ||
		mediaType == runtime.ContentTypeProtobuf):
	case r.Body != nil:
		body := bufio.NewReader(r.Body)
		put.Header.Set("Content-Type", sniff(body))
		put.Body = readCloser{body, r.Body}
	}
	return put
}

type readCloser struct {
	io.Reader
	io.Closer
}

// sniff determines the content type from the first bytes of a body.
func sniff(body *bufio.Reader) string {
	head, _ := body.Peek(64) // a short body is returned whole
	if bytes.HasPrefix(head, []byte("k8s\x00")) {
		return runtime.ContentTypeProtobuf
	}
	if bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")) {
		return runtime.ContentTypeJSON
	}
	return runtime.ContentTypeYAML
}

// redirectCorePath redirects the paths of core/v1 that kubectl uses for a subresource of ours, such as
// kubectl create token. The resources of core/v1 themselves are not served, because kubectl get would
// then list them instead of ours.
func redirectCorePath(kinds kinds, r *http.Request) *http.Request {
	const prefix = "/api/v1/namespaces/"
	if subresource, ok := kinds.calledSubresource(r, prefix); !ok || !subresource.CorePath {
		return r
	}
	rest := strings.TrimPrefix(r.URL.Path, prefix)
	ours := r.Clone(r.Context())
	ours.URL.Path, ours.URL.RawPath = apiPrefix+"namespaces/"+rest, ""
	return ours
}

// allowEmptyBody allows calls without a body of subresources that need none. It sets strict field
// validation, because an unknown field may be a misspelled request, such as one to end credentials.
func allowEmptyBody(kinds kinds, r *http.Request) *http.Request {
	if subresource, ok := kinds.calledSubresource(r, apiPrefix+"namespaces/"); !ok || !subresource.OptionalBody {
		return r
	}
	plain := r.Clone(r.Context())
	query := plain.URL.Query()
	query.Set("fieldValidation", metav1.FieldValidationStrict)
	plain.URL.RawQuery = query.Encode()
	switch {
	case r.ContentLength == 0:
		plain.Header.Set("Content-Type", runtime.ContentTypeJSON)
		plain.Body, plain.ContentLength = io.NopCloser(strings.NewReader(emptyObject)), int64(len(emptyObject))
	case r.ContentLength < 0 && r.Body != nil: // the body may be empty, as with kubectl create --raw -f /dev/null
		plain.Body = readCloser{&emptyObjectReader{body: r.Body}, r.Body}
	}
	return plain
}

const emptyObject = "{}"

// emptyObjectReader returns the body, or an empty object if the body is empty.
type emptyObjectReader struct {
	body     io.Reader
	nonEmpty bool // at least one byte was read
}

// Read implements io.Reader.
func (o *emptyObjectReader) Read(p []byte) (int, error) {
	n, err := o.body.Read(p)
	if n == 0 && errors.Is(err, io.EOF) && !o.nonEmpty {
		o.body = strings.NewReader(emptyObject)
		n, err = o.body.Read(p)
	}
	o.nonEmpty = o.nonEmpty || n > 0
	return n, err
}

// isItem matches namespaces/{namespace}/{resource}/{name} and nothing longer.
func isItem(path string) bool {
	rest, ok := strings.CutPrefix(path, apiPrefix+"namespaces/")
	if !ok {
		return false
	}
	parts := strings.Split(strings.TrimSuffix(rest, "/"), "/")
	return len(parts) == 3 && parts[2] != ""
}
