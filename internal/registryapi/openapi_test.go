package registryapi_test

import (
	"net/http"
	"testing"
)

func validate(t *testing.T, req *http.Request, reqBody string, res *http.Response, body []byte) {}
