module freshet/tools/release

go 1.26.0

require (
	github.com/CycloneDX/cyclonedx-go v0.12.0
	github.com/google/licensecheck v0.3.1
	golang.org/x/crypto v0.58.0
)

require golang.org/x/sys v0.49.0 // indirect
