// Package sbom writes a parts list (software bill of materials) in the format CycloneDX 1.6 for every published
// file that contains a program. Scanners compare such lists with databases of vulnerabilities.
package sbom

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"

	"freshet/tools/release/parts"
	"freshet/tools/release/plan"
)

// Extension is appended to the name of the file that a list belongs to.
const Extension = ".cdx.json"

// Build writes the lists of the archives. Packages and images call Write for each of their files.
func Build(ctx context.Context, p *plan.Plan) error {
	for _, t := range p.Targets {
		if err := Write(ctx, p, t, p.Archive(t)); err != nil {
			return err
		}
	}
	return nil
}

// Write writes the parts list of a published file that contains the program of a target.
func Write(ctx context.Context, p *plan.Plan, t plan.Target, file string) error {
	modules, err := parts.Of(ctx, p, t)
	if err != nil {
		return err
	}
	sum, err := sha256Of(file)
	if err != nil {
		return err
	}
	fmt.Println("listing the parts of", filepath.Base(file))
	out, err := os.Create(file + Extension)
	if err != nil {
		return err
	}
	err = cyclonedx.NewBOMEncoder(out, cyclonedx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).
		EncodeVersion(list(p, t, filepath.Base(file), sum, modules), cyclonedx.SpecVersion1_6)
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("writing %s%s: %w", filepath.Base(file), Extension, err)
	}
	return nil
}

func list(p *plan.Plan, t plan.Target, file, sum string, modules []parts.Module) *cyclonedx.BOM {
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = serial(sum)
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: p.Time.Format(time.RFC3339),
		Component: &cyclonedx.Component{
			BOMRef: "program", Type: cyclonedx.ComponentTypeApplication, Name: plan.Name, Version: p.Version,
			Description: file + " for " + t.OS + "/" + t.Arch,
			Licenses:    licences([]string{"Apache-2.0"}),
			Hashes:      &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: sum}},
			Properties:  &[]cyclonedx.Property{{Name: "freshet:commit", Value: p.Commit}},
		},
	}
	components := make([]cyclonedx.Component, 0, len(modules))
	for _, m := range modules {
		name := "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B")
		c := cyclonedx.Component{
			BOMRef: name, Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version,
			Scope: cyclonedx.ScopeRequired, PackageURL: name, Licenses: licences(m.Licences()),
		}
		if sum, ok := strings.CutPrefix(m.Sum, "h1:"); ok {
			if hash, err := base64.StdEncoding.DecodeString(sum); err == nil {
				c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(hash)}}
			}
		}
		components = append(components, c)
	}
	bom.Components = &components
	return bom
}

func licences(ids []string) *cyclonedx.Licenses {
	var all cyclonedx.Licenses
	for _, id := range ids {
		all = append(all, cyclonedx.LicenseChoice{License: &cyclonedx.License{ID: id}})
	}
	return &all
}

// serial makes a UUID of version 8 (RFC 9562) from the sum of the file, so that equal files have equal lists.
func serial(sum string) string {
	raw, _ := hex.DecodeString(sum[:32])
	raw[6], raw[8] = raw[6]&0x0f|0x80, raw[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:])
}

func sha256Of(file string) (string, error) {
	in, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer in.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, in); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
