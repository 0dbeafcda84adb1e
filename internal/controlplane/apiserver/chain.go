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

// buildChain wraps the library's chain. Everything here must be outside of it:
// inside, the verb is already decided, and authorization with it.
func buildChain(scheme *runtime.Scheme, codecs serializer.CodecFactory, kinds kinds, limits *inFlight,
	auditor pipeline.Auditor, quotas *quota.Book,
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
			record.Expected = isPublic(r.URL.Path)
			if auditor != nil {
				r = withAuditNotes(r)
				defer func() { writeAudit(c, kinds, r, record, auditor) }()
			}
			if err := refuse(r); err != nil {
				writeStatus(codecs, w, r, err)
				return
			}
			r = plainRequest(ourTokenPath(replaceByPost(r)))
			chain.ServeHTTP(w, r)
		})
	}
}

func writeStatus(codecs serializer.CodecFactory, w http.ResponseWriter, r *http.Request, err error) {
	web.RecordOf(r.Context()).Fail(err)
	responsewriters.ErrorNegotiated(err, codecs, v1alpha1.SchemeGroupVersion, w, r)
}

// refuse answers what the machinery would let through or answer with a 500.
func refuse(r *http.Request) error {
	if refusal := web.Refused(r); refusal != nil {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: int32(refusal.Status), Reason: refusalReason(refusal.Status),
			Message: refusal.Text,
		}}
	}
	for name := range r.Header {
		// Nobody may act as somebody else here: the machinery has several
		// impersonation verbs, and none is ever granted.
		if strings.HasPrefix(name, "Impersonate-") {
			return apierrors.NewForbidden(schema.GroupResource{}, "",
				fmt.Errorf("impersonation is not supported: remove the header %s", name))
		}
	}
	if r.URL.RawQuery == "" {
		return nil
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return apierrors.NewBadRequest("the query string is malformed: " + err.Error())
	}
	if version := query.Get("resourceVersion"); version != "" {
		if _, err := strconv.ParseUint(version, 10, 63); err != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("resourceVersion %q is not a version that this server gave out",
				version))
		}
	}
	if grace := query.Get("gracePeriodSeconds"); grace != "" {
		if _, err := strconv.ParseInt(grace, 10, 64); err != nil { // a negative one is told as invalid, later
			return apierrors.NewBadRequest(fmt.Sprintf("gracePeriodSeconds must be a whole number, not %q", grace))
		}
	}
	for name, most := range map[string]int64{"limit": math.MaxInt64, "timeoutSeconds": maxTimeout} {
		if text := query.Get(name); text != "" {
			if n, err := strconv.ParseInt(text, 10, 64); err != nil || n < 0 || n > most {
				return apierrors.NewBadRequest(fmt.Sprintf("%s must be a whole number from 0 to %d, not %q",
					name, most, text))
			}
		}
	}
	return refuseFieldManager(query)
}

// maxTimeout keeps a call's end from overflowing; nothing lasts 68 years.
const maxTimeout = math.MaxInt32

// refuseFieldManager holds the rule for every call, also those where the
// machinery would ignore the parameter.
func refuseFieldManager(query url.Values) error {
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

// refusalReason is the machinery's word for a status, where it has one.
func refusalReason(status int) metav1.StatusReason {
	if status == http.StatusBadRequest {
		return metav1.StatusReasonBadRequest
	}
	return metav1.StatusReasonUnknown
}

const apiPrefix = "/apis/cloud.vendor.io/v1alpha1/"

// replaceByPost makes a POST on an item the replace that the specification
// describes. Any content type is accepted: what is not JSON, YAML or protobuf
// by name is told by its first bytes (docs/spec/resources.md#r2).
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

// sniff looks at the first bytes of a body.
func sniff(body *bufio.Reader) string {
	head, _ := body.Peek(64) // a short body has a short head
	if bytes.HasPrefix(head, []byte("k8s\x00")) {
		return runtime.ContentTypeProtobuf
	}
	if bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")) {
		return runtime.ContentTypeJSON
	}
	return runtime.ContentTypeYAML
}

// ourTokenPath has tokens asked for where kubectl create token does, which knows
// the accounts of core/v1 only. Those are not served: kubectl get sa would find
// them instead of ours.
func ourTokenPath(r *http.Request) *http.Request {
	rest, ok := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/")
	parts := strings.Split(rest, "/")
	if !ok || r.Method != http.MethodPost || len(parts) != 4 || parts[1] != "serviceaccounts" || parts[3] != "token" {
		return r
	}
	ours := r.Clone(r.Context())
	ours.URL.Path, ours.URL.RawPath = apiPrefix+"namespaces/"+rest, ""
	return ours
}

// plainRequest lets the credentials of an account be rotated, and a person be
// invited, without a body, and never with a field that nobody knows: it may have
// been meant as the end of something.
func plainRequest(r *http.Request) *http.Request {
	rest, ok := strings.CutPrefix(r.URL.Path, apiPrefix+"namespaces/")
	parts := strings.Split(rest, "/")
	if !ok || r.Method != http.MethodPost || len(parts) != 4 || parts[1]+"/"+parts[3] != "serviceaccounts/rotate" &&
		parts[1]+"/"+parts[3] != "users/invite" {
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
	case r.ContentLength < 0 && r.Body != nil: // it may be empty, as that of kubectl create --raw -f /dev/null
		plain.Body = readCloser{&orEmpty{body: r.Body}, r.Body}
	}
	return plain
}

const emptyObject = "{}"

// orEmpty is a body, or the empty object when there is nothing in it.
type orEmpty struct {
	body io.Reader
	some bool // something was read
}

// Read implements io.Reader.
func (o *orEmpty) Read(p []byte) (int, error) {
	n, err := o.body.Read(p)
	if n == 0 && errors.Is(err, io.EOF) && !o.some {
		o.body = strings.NewReader(emptyObject)
		n, err = o.body.Read(p)
	}
	o.some = o.some || n > 0
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
