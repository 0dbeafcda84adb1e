package apiserver

import (
	"net/http"
	"strings"

	"freshet/internal/base/errs"
)

var errDiskFull = errs.New(errs.Unavailable,
	"disk is full; resources can be read and deleted, but not created or changed until space is freed")

// RejectWhenFull returns a handler for the resource API that rejects calls that store data while the disk is full.
// Reviews and tokens store nothing.
func RejectWhenFull(next http.Handler, hasSpace func() bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		stores := req.Method == http.MethodPost || req.Method == http.MethodPut || req.Method == http.MethodPatch
		if stores && !hasSpace() && !strings.HasSuffix(req.URL.Path, "reviews") &&
			!strings.HasSuffix(req.URL.Path, "/token") {
			RespondUnavailable(w, req, errDiskFull)
			return
		}
		next.ServeHTTP(w, req)
	})
}
