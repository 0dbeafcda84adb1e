package keep

import (
	_ "github.com/anishathalye/porcupine"
	_ "github.com/getkin/kin-openapi/openapi3"
	_ "github.com/getkin/kin-openapi/openapi3filter"
	_ "github.com/getkin/kin-openapi/routers/gorillamux"
	_ "github.com/twmb/avro"
	_ "github.com/twmb/franz-go/pkg/sr"
	_ "golang.org/x/tools/txtar"
)
