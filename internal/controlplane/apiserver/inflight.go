package apiserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authentication/authenticator"

	"freshet/internal/base/fairshare"
	"freshet/internal/base/web"
	"freshet/internal/controlplane/caller"
)

// inFlight limits the calls that are processed concurrently, in fair shares for organizations and
// principals. Excess calls wait, and get 429 after a timeout; the API machinery's own limit would
// reject them immediately and without a Status. Watches, health checks and the service's own calls
// are not limited.
//
// A call counts when its caller is authenticated and its body is read: a client that sends slowly
// or nothing holds a connection only.
type inFlight struct {
	codecs        serializer.CodecFactory
	bodies        *web.Limiter // limits the memory of bodies
	maxBody       int64
	reads, writes *fairshare.Semaphore
	maxWait       time.Duration
}

const maxInFlightWait = 20 * time.Second

func newInFlight(codecs serializer.CodecFactory, bodies *web.Limiter, maxBody int64, reads, writes int) *inFlight {
	return &inFlight{
		codecs: codecs, bodies: bodies, maxBody: maxBody, maxWait: maxInFlightWait,
		reads:  fairshare.New(int64(reads), fairshare.Options{}),
		writes: fairshare.New(int64(writes), fairshare.Options{}),
	}
}

// handle must run after authenticate.
func (l *inFlight) handle(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		principal, counts := callerOf(r)
		if !counts || isPublic(r.URL.Path) || isWatch(r) {
			next.ServeHTTP(w, r)
			return
		}
		r, held, err := l.withBody(r, principal)
		defer l.bodies.Release(principal, held)
		if err != nil {
			writeStatus(l.codecs, w, r, bodyStatus(err, l.maxBody))
			return
		}
		limiter := l.writes
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			limiter = l.reads
		}
		if _, err := limiter.Acquire(r.Context(), principal, 1, l.maxWait); err != nil {
			writeStatus(l.codecs, w, r, apierrors.NewTooManyRequests(
				fmt.Sprintf("too many concurrent requests: your share or the server's limit of %d is in use; retry",
					limiter.Capacity()), 1))
			return
		}
		defer limiter.Release(principal, 1)
		next.ServeHTTP(w, r)
	})
}

// callerOf returns the caller of a request, and whether the request counts.
func callerOf(r *http.Request) (web.Caller, bool) {
	response, ok := r.Context().Value(authenticatedKey{}).(*authenticator.Response)
	if !ok || caller.IsService(response.User) {
		return web.Caller{}, false
	}
	if principal, ok := response.User.(caller.Caller); ok {
		return web.Caller{Organization: principal.Organization, Principal: principal.Name}, true
	}
	return web.Caller{}, true
}

// withBody returns the request with its whole body in memory.
func (l *inFlight) withBody(r *http.Request, principal web.Caller) (*http.Request, int64, error) {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return r, 0, nil
	}
	body, held, err := l.bodies.ReadBody(r, principal, l.maxBody)
	if err == nil {
		err = checkYAML(r, body)
	}
	if err != nil {
		return r, held, err
	}
	whole := r.Clone(r.Context())
	whole.Body, whole.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	whole.TransferEncoding = nil
	return whole, held, nil
}

// bodyStatus converts an error about a body.
func bodyStatus(err error, limit int64) error {
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status):
		return err
	case errors.Is(err, web.ErrBodyTooLarge):
		return apierrors.NewRequestEntityTooLargeError(
			fmt.Sprintf("request body is too large; the limit is %d bytes", limit))
	case errors.Is(err, web.ErrBodyTimeout):
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusRequestTimeout, Reason: metav1.StatusReasonTimeout,
			Message: err.Error(),
		}}
	case errors.Is(err, web.ErrBusy):
		return apierrors.NewTooManyRequests(
			"the memory for request bodies is exhausted; retry", 1)
	}
	return apierrors.NewBadRequest(err.Error())
}
