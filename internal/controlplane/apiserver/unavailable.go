package apiserver

import (
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"freshet/internal/base/web"
)

// statusCodecs can encode a Status only, and need no server.
var statusCodecs = sync.OnceValue(func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(scheme)
})

// RespondUnavailable responds to a request that the API cannot serve yet, in the format that the client
// accepts.
func RespondUnavailable(w http.ResponseWriter, r *http.Request, err error) {
	web.Discard(r)
	status := apierrors.NewGenericServerResponse(http.StatusServiceUnavailable, "", schema.GroupResource{},
		"", "", 1, false)
	status.ErrStatus.Reason, status.ErrStatus.Message = metav1.StatusReasonServiceUnavailable, err.Error()
	writeStatus(statusCodecs(), w, r, status)
	web.RecordOf(r.Context()).Fail(err) // log the cause instead of the text of the response
}
