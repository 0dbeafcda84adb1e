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

// statusCodecs know a Status and nothing else, and need no server.
var statusCodecs = sync.OnceValue(func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(scheme)
})

// Refuse answers a request that the API cannot serve yet, in the form that the
// caller asked for.
func Refuse(w http.ResponseWriter, r *http.Request, err error) {
	web.Discard(r)
	status := apierrors.NewGenericServerResponse(http.StatusServiceUnavailable, "", schema.GroupResource{},
		"", "", 1, false)
	status.ErrStatus.Reason, status.ErrStatus.Message = metav1.StatusReasonServiceUnavailable, err.Error()
	writeStatus(statusCodecs(), w, r, status)
	web.RecordOf(r.Context()).Fail(err) // the caller's words for it are not for the log
}
