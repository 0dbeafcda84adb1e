module freshet/test/clients/pulsar

go 1.26.0

require (
	freshet v0.0.0
	github.com/apache/pulsar-client-go v0.19.0
)

require (
	github.com/golang-jwt/jwt/v5 v5.3.1 // indirect
	github.com/golang/protobuf v1.5.4 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	golang.org/x/oauth2 v0.37.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace freshet => ../../..

replace freshet.dev/client => ../../../client
