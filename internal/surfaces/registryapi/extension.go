package registryapi

import (
	"encoding/json"
	"net/http"

	"freshet/api/openapi"
	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/registry/schemas"
)

// mediaLines is the media type of an export: one JSON object per line.
const mediaLines = "application/x-ndjson"

// maxImport limits the file of an import, in bytes.
const maxImport = 4 << 30

// schemaRef is one of the two schemas of a diff: a version of a subject, or a draft
// that would be registered under the subject.
type schemaRef struct {
	Subject    string              `json:"subject"`
	Version    versionText         `json:"version"`
	Schema     *string             `json:"schema"`
	SchemaType string              `json:"schemaType"`
	References []schemas.Reference `json:"references"`
}

// versionText is a version in a body: a number, or a word such as latest.
type versionText string

// UnmarshalJSON implements json.Unmarshaler.
func (v *versionText) UnmarshalJSON(data []byte) error {
	var word string
	if json.Unmarshal(data, &word) != nil {
		word = string(data)
	}
	*v = versionText(word)
	return nil
}

// diff returns the differences of two schemas and what they mean for compatibility.
func (c *call) diff() error {
	var req struct {
		From schemaRef `json:"from"`
		To   schemaRef `json:"to"`
	}
	if err := c.decode(&req); err != nil {
		return err
	}
	from, err := c.schemaOf(&req.From)
	if err != nil {
		return err
	}
	to, err := c.schemaOf(&req.To)
	if err != nil {
		return err
	}
	d, err := c.Registry.Diff(c.R.Context(), from, to)
	if err != nil {
		return err
	}
	body, err := web.MarshalJSON(d)
	if err != nil {
		return err
	}
	return c.reply(body)
}

func (c *call) schemaOf(req *schemaRef) (schemas.DiffOperand, error) {
	if err := schemas.CheckSubject(req.Subject); err != nil {
		return schemas.DiffOperand{}, err
	}
	if err := c.authorize(req.Subject, describeSubject); err != nil {
		return schemas.DiffOperand{}, err
	}
	side := schemas.DiffOperand{Subject: req.Subject}
	if req.Schema == nil {
		var err error
		side.Version, err = schemas.ParseVersion(string(req.Version))
		return side, err
	}
	t, err := schemas.ParseType(req.SchemaType)
	if err != nil {
		return side, err
	}
	side.Draft = &schemas.Draft{Type: t, Text: *req.Schema, References: req.References, Reader: &reader{call: c}}
	return side, nil
}

// authorizeExport checks the permission to read every subject.
func (c *call) authorizeExport() error { return c.require(describeSubject, c.Scope, "every subject") }

// export writes the whole registry.
func (c *call) export() error {
	h := c.W.Header()
	h.Set("Content-Type", mediaLines)
	h.Set("Content-Disposition", `attachment; filename="registry.ndjson"`)
	h["Cache-Control"] = noCache
	out := &countingWriter{w: c.W}
	if err := c.Registry.Export(c.R.Context(), out); err != nil {
		if out.n == 0 {
			h.Del("Content-Disposition")
			return err
		}
		web.RecordOf(c.R.Context()).Fail(err)
		panic(http.ErrAbortHandler) // so that the client notices that the file is incomplete
	}
	return nil
}

// authorizeImport checks the permissions to read every subject, because imported schemas may
// refer to any, to create every subject, and to set the mode, because the file determines ids.
func (c *call) authorizeImport() error {
	if err := c.authorizeExport(); err != nil {
		return err
	}
	if err := c.require(createSubject, c.Scope, "every subject"); err != nil {
		return err
	}
	return c.authorizeMode()
}

// importFile imports an export into this registry.
func (c *call) importFile() error {
	done, err := c.Registry.Import(c.WorkContext(), http.MaxBytesReader(c.W, c.R.Body, maxImport), c.requireNamespace)
	c.Changed = done.Versions+done.Levels > 0
	if err != nil {
		return errs.Newf(errs.KindOf(err), "%w (already imported: %d versions, %d levels)", err,
			done.Versions, done.Levels)
	}
	body, err := web.MarshalJSON(done)
	if err != nil {
		return err
	}
	return c.reply(body)
}

// document serves the OpenAPI document. It needs no token, because it has no secrets.
func (c *call) document() error {
	web.WriteBody(c.W, http.StatusOK, "application/yaml", openapi.Document(surfaceName))
	return nil
}

type countingWriter struct {
	w http.ResponseWriter
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
